import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Field;
import com.google.protobuf.Option;
import com.google.protobuf.Timestamp;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.Time;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema.Parser;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.reflect.AvroSchema;
import org.apache.avro.reflect.Nullable;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/** Schemas serviceUrl (case topic)..: writes what the cases below say to each topic. */
public class Schemas {
    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    interface Case {
        void write(PulsarClient client, String topic) throws Exception;
    }

    @FunctionalInterface
    interface Sending<T> {
        void send(Producer<T> producer) throws Exception;
    }

    public enum Color { RED, GREEN }

    public static class Line {
        public String item;
        public int count;

        public Line() {}

        Line(String item, int count) {
            this.item = item;
            this.count = count;
        }
    }

    public static class Order {
        public boolean paid;
        public int number;
        public long cents;
        public float weight;
        public double rate;
        public String customer;
        public byte[] raw;
        public Color color;
        public List<String> tags;
        public Map<String, Long> counts;
        public Line first;
        public List<Line> lines;
        public Integer maybe;
        @AvroSchema("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":20,\"scale\":2}")
        public BigDecimal price;
        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}")
        public Instant at;
        @AvroSchema("{\"type\":\"int\",\"logicalType\":\"date\"}")
        public LocalDate day;
        @AvroSchema("{\"type\":\"int\",\"logicalType\":\"time-millis\"}")
        public LocalTime hour;
    }

    public static class Plain {
        public boolean paid;
        public int number;
        public long cents;
        public float weight;
        public double rate;
        public String customer;
        public byte[] raw;
        public Color color;
        public List<String> tags;
        public Map<String, Long> counts;
        public Line first;
        public List<Line> lines;
        public Integer maybe;
    }

    /** What Jackson writes otherwise than the schema says. */
    public static class Java {
        private boolean isOpen = true;
        public Instant at = Instant.ofEpochSecond(1_700_000_000L, 123_456_789);
        public LocalDate day = LocalDate.of(2024, 2, 29);
        public LocalTime hour = LocalTime.of(23, 59, 59, 1_000);
        public LocalDateTime wall = LocalDateTime.of(2024, 2, 29, 12, 30);
        public Date old = new Date(1_700_000_000_123L);
        public BigDecimal price = new BigDecimal("12.50");
        public Map<Integer, BigDecimal> prices = Map.of(7, new BigDecimal("1.50"));
        public char letter = 'ß';
        public Java self;

        public boolean isOpen() {
            return isOpen;
        }

        public void setOpen(boolean open) {
            isOpen = open;
        }
    }

    public static class Place {
        public String city;
        public int zip;
    }

    private static Order order() {
        Order order = new Order();
        order.paid = true;
        order.number = Integer.MIN_VALUE;
        order.cents = Long.MAX_VALUE;
        order.weight = 1.5f;
        order.rate = -2.25;
        order.customer = "Zoë";
        order.raw = new byte[] {0, -1, 65};
        order.color = Color.GREEN;
        order.tags = List.of("a", "", "ß");
        order.counts = Map.of("x", 1L);
        order.first = new Line("first", 1);
        order.lines = List.of(new Line("one", 1), new Line("two", 2));
        order.maybe = 7;
        order.price = new BigDecimal("-123456789012345678.90");
        order.at = Instant.ofEpochMilli(1_700_000_000_123L);
        order.day = LocalDate.of(2024, 2, 29);
        order.hour = LocalTime.of(23, 59, 59, 999_000_000);
        return order;
    }

    private static Plain plain() {
        Order order = order();
        Plain plain = new Plain();
        plain.paid = order.paid;
        plain.number = order.number;
        plain.cents = order.cents;
        plain.weight = order.weight;
        plain.rate = order.rate;
        plain.customer = order.customer;
        plain.raw = order.raw;
        plain.color = order.color;
        plain.tags = order.tags;
        plain.counts = order.counts;
        plain.first = order.first;
        plain.lines = order.lines;
        plain.maybe = order.maybe;
        return plain;
    }

    private static Place place(String city, int zip) {
        Place place = new Place();
        place.city = city;
        place.zip = zip;
        return place;
    }

    private static Field field() {
        return Field.newBuilder()
                .setKind(Field.Kind.TYPE_STRING)
                .setCardinality(Field.Cardinality.CARDINALITY_REPEATED)
                .setNumber(Integer.MAX_VALUE)
                .setName("Zoë")
                .setOneofIndex(-1)
                .setPacked(true)
                .addOptions(Option.newBuilder()
                        .setName("o")
                        .setValue(Any.newBuilder().setTypeUrl("t").setValue(ByteString.copyFrom(new byte[] {0, -1}))))
                .build();
    }

    private static <T> void with(PulsarClient client, String topic, Schema<T> schema, boolean batched, Sending<T> sending)
            throws Exception {
        ProducerBuilder<T> builder = client.newProducer(schema).topic(topic).enableBatching(batched);
        if (batched) {
            builder.batchingMaxPublishDelay(1, java.util.concurrent.TimeUnit.HOURS).batchingMaxMessages(1000);
        }
        try (Producer<T> producer = builder.create()) {
            sending.send(producer);
            producer.flush();
        }
    }

    /** All values in one batch, then a tombstone with a key, then one that is no batch. */
    @SafeVarargs
    private static <T> void values(String name, Schema<T> schema, T... values) {
        CASES.put(name, (client, topic) -> {
            with(client, topic, schema, true, producer -> {
                for (T value : values) {
                    producer.newMessage().value(value).sendAsync();
                }
                producer.newMessage().key("gone").value(null).sendAsync();
            });
            with(client, topic, schema, false, producer -> producer.newMessage().key("k").value(values[0]).send());
        });
    }

    private static byte[] avro(org.apache.avro.Schema schema, GenericRecord record) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(schema).write(record, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    /** Version n has the fields id, f1, .., fn; the version of another producer has an id that is text. */
    private static org.apache.avro.Schema version(int number, String id) {
        StringBuilder fields = new StringBuilder("{\"name\":\"id\",\"type\":\"" + id + "\"}");
        for (int i = 1; i <= number; i++) {
            fields.append(",{\"name\":\"f" + i + "\",\"type\":[\"null\",\"string\"],\"default\":null}");
        }
        return new Parser().parse("{\"type\":\"record\",\"name\":\"Row\",\"fields\":[" + fields + "]}");
    }

    private static void versions(PulsarClient client, String topic) throws Exception {
        for (int number = 0; number < 10; number++) {
            org.apache.avro.Schema schema = version(number, "long");
            for (int row = 0; row < 3; row++) {
                GenericRecord record = new GenericData.Record(schema);
                record.put("id", number * 10L + row);
                for (int i = 1; i <= number; i++) {
                    record.put("f" + i, i % 2 == 0 ? null : "v" + number + "." + i);
                }
                byte[] value = avro(schema, record);
                boolean batched = row < 2;
                with(client, topic, Schema.NATIVE_AVRO(schema), batched, producer -> {
                    producer.newMessage().value(value).sendAsync();
                    if (batched) {
                        producer.newMessage().key("gone").value(null).sendAsync();
                    }
                });
            }
            if (number == 4) {
                org.apache.avro.Schema other = version(1, "string");
                GenericRecord record = new GenericData.Record(other);
                record.put("id", "not a number");
                record.put("f1", "other");
                byte[] value = avro(other, record);
                with(client, topic, Schema.NATIVE_AVRO(other), true, producer -> producer.sendAsync(value));
            }
        }
        with(client, topic, Schema.AUTO_PRODUCE_BYTES(), false, producer -> producer.send(avro(
                version(9, "long"), filled())));
    }

    /** One producer and one flush, and messages of two schemas by turns. */
    private static void turns(PulsarClient client, String topic) throws Exception {
        with(client, topic, Schema.NATIVE_AVRO(version(0, "long")), true, producer -> {
            for (int row = 0; row < 6; row++) {
                org.apache.avro.Schema schema = version(row % 3 == 2 ? 1 : 0, "long");
                GenericRecord record = new GenericData.Record(schema);
                record.put("id", (long) row);
                producer.newMessage(Schema.NATIVE_AVRO(schema)).value(avro(schema, record)).sendAsync();
            }
        });
    }

    private static GenericRecord filled() {
        GenericRecord record = new GenericData.Record(version(9, "long"));
        record.put("id", 1000L);
        return record;
    }

    private static <K, V> void pairs(String name, Schema<K> key, Schema<V> value, K k, V v) {
        for (KeyValueEncodingType type : KeyValueEncodingType.values()) {
            boolean inline = type == KeyValueEncodingType.INLINE;
            CASES.put(name + "-" + type.name().toLowerCase(), (client, topic) -> {
                Schema<KeyValue<K, V>> schema = Schema.KeyValue(key, value, type);
                for (boolean batched : new boolean[] {true, false}) {
                    with(client, topic, schema, batched, producer -> {
                        producer.newMessage().value(new KeyValue<>(k, v)).sendAsync();
                        producer.newMessage().value(new KeyValue<>(k, null)).sendAsync();
                        producer.newMessage().value(new KeyValue<>(null, v)).sendAsync();
                        producer.newMessage().value(new KeyValue<>(null, null)).sendAsync();
                        if (inline) {
                            producer.newMessage().key("gone").value(null).sendAsync();
                        }
                    });
                }
            });
        }
    }

    private static void define() {
        values("bytes", Schema.BYTES, new byte[] {0, -1}, new byte[0]);
        values("bytebuffer", Schema.BYTEBUFFER, ByteBuffer.wrap(new byte[] {1, 2}));
        values("string", Schema.STRING, "", "Zoë", "\u0000\uD83D\uDE00");
        values("bool", Schema.BOOL, true, false);
        values("int8", Schema.INT8, Byte.MIN_VALUE, (byte) 0, Byte.MAX_VALUE);
        values("int16", Schema.INT16, Short.MIN_VALUE, (short) 0, Short.MAX_VALUE);
        values("int32", Schema.INT32, Integer.MIN_VALUE, 0, Integer.MAX_VALUE);
        values("int64", Schema.INT64, Long.MIN_VALUE, 0L, Long.MAX_VALUE);
        values("float", Schema.FLOAT, Float.MIN_VALUE, -0f, Float.MAX_VALUE, Float.NEGATIVE_INFINITY, Float.NaN);
        values("double", Schema.DOUBLE, Double.MIN_VALUE, -0d, Double.MAX_VALUE, Double.NEGATIVE_INFINITY, Double.NaN);
        values("date", Schema.DATE, new Date(1_700_000_000_123L), new Date(-1L));
        values("time", Schema.TIME, new Time(86_399_999L), new Time(0L));
        values("timestamp", Schema.TIMESTAMP, new java.sql.Timestamp(1_700_000_000_123L), new java.sql.Timestamp(-1L));
        values("instant", Schema.INSTANT, Instant.ofEpochSecond(1_700_000_000L, 123_456_789), Instant.ofEpochSecond(-1, 1));
        values("localdate", Schema.LOCAL_DATE, LocalDate.of(2024, 2, 29), LocalDate.of(1, 1, 1), LocalDate.of(9999, 12, 31));
        values("localtime", Schema.LOCAL_TIME, LocalTime.MIDNIGHT, LocalTime.of(23, 59, 59, 999_999_999));
        values("localdatetime", Schema.LOCAL_DATE_TIME, LocalDateTime.of(2024, 2, 29, 12, 30, 1, 123_456_789),
                LocalDateTime.of(1969, 12, 31, 23, 59, 59, 1));
        SchemaDefinition<Order> definition = SchemaDefinition.<Order>builder()
                .withPojo(Order.class).withJSR310ConversionEnabled(true).build();
        values("avro", Schema.AVRO(definition), order());
        values("json", Schema.JSON(Plain.class), plain(), new Plain());
        values("json-java", Schema.JSON(Java.class), new Java());
        values("json-int", Schema.JSON(Integer.class), 7);
        values("json-enums", Schema.JSON(Color[].class), new Color[] {Color.RED, Color.GREEN});
        values("protobuf", Schema.PROTOBUF(Timestamp.class), Timestamp.newBuilder().setSeconds(-5).setNanos(7).build());
        values("protobuf-nested", Schema.PROTOBUF(Field.class), field());
        values("protobuf-native", Schema.PROTOBUF_NATIVE(Field.class), field(), Field.getDefaultInstance());
        pairs("kv-string-int32", Schema.STRING, Schema.INT32, "key", 5);
        pairs("kv-avro-json", Schema.AVRO(Place.class), Schema.JSON(Place.class), place("Köln", 1), place("Bonn", 2));
        pairs("kv-bytes-bytes", Schema.BYTES, Schema.BYTES, new byte[] {0, -1}, new byte[0]);
        CASES.put("versions", Schemas::versions);
        CASES.put("turns", Schemas::turns);
    }

    public static void main(String[] arguments) throws Exception {
        define();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (int i = 1; i < arguments.length; i += 2) {
                try {
                    CASES.get(arguments[i]).write(client, arguments[i + 1]);
                } catch (Exception error) {
                    throw new IllegalStateException(arguments[i], error);
                }
            }
        }
    }
}
