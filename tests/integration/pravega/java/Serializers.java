import com.google.common.collect.ImmutableMap;
import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.impl.JavaSerializer;
import io.pravega.schemaregistry.client.SchemaRegistryClientConfig;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig.SerializerConfigBuilder;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.net.URI;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/** Serializers controller registry scope: events of every format and codec, by Pravega's own serializers, to streams. */
public class Serializers {
    private static EventStreamClientFactory FACTORY;
    private static URI REGISTRY;
    private static String SCOPE;

    public static class Order {
        public String customer;
        public int count;
        public double rate;
        public boolean paid;
        public List<String> tags;
        public Map<String, Long> counts;
        public Line first;
    }

    public static class Line {
        public String item;
    }

    private static Order order(int number) {
        Order order = new Order();
        order.customer = "Zoë " + number;
        order.count = number;
        order.rate = 1.5;
        order.paid = true;
        order.tags = List.of("a", "ß");
        order.counts = Map.of("x", 1L);
        order.first = new Line();
        order.first.item = "one";
        return order;
    }

    /** Version 0, and 1 with a field more. */
    private static Schema avroSchema(int version) {
        return new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"U\",\"namespace\":\"t\",\"fields\":["
                + "{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"int\"}"
                + (version == 0 ? "" : ",{\"name\":\"c\",\"type\":[\"null\",\"long\"],\"default\":null}") + "]}");
    }

    private static GenericRecord avro(int version, int number) {
        GenericRecord record = new GenericData.Record(avroSchema(version));
        record.put("a", "hello");
        record.put("b", number);
        if (version > 0) {
            record.put("c", (long) number);
        }
        return record;
    }

    private static SerializerConfig config(String stream, SerializationFormat format, Codecs codec) {
        return config(stream, format, codec, format == SerializationFormat.Any);
    }

    private static SerializerConfig config(
            String stream, SerializationFormat format, Codecs codec, boolean manyTypes) {
        SerializerConfigBuilder builder = SerializerConfig.builder()
                .groupId(stream)
                .namespace(SCOPE)
                .createGroup(format, Compatibility.allowAny(), manyTypes)
                .registerSchema(true)
                .registerCodec(true)
                .registryConfig(SchemaRegistryClientConfig.builder().schemaRegistryUri(REGISTRY).build());
        if (codec != Codecs.None) {
            builder.encoder(codec.getCodec());
        }
        return builder.build();
    }

    @SafeVarargs
    private static <T> void write(String stream, Serializer<T> serializer, T... events) {
        try (EventStreamWriter<T> writer =
                FACTORY.createEventWriter(stream, serializer, EventWriterConfig.builder().build())) {
            for (T event : events) {
                writer.writeEvent("key", event);
            }
            writer.flush();
        }
    }

    private static void writeAvro(String stream, SerializationFormat format, Codecs codec) {
        for (int version = 0; version < 2; version++) {
            SerializerConfig config = config(stream, format, codec);
            write(stream, SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(avroSchema(version))),
                    avro(version, 7), avro(version, Integer.MIN_VALUE));
        }
    }

    private static void writeJson(String stream, SerializationFormat format, Codecs codec) {
        SerializerConfig config = config(stream, format, codec);
        write(stream, SerializerFactory.jsonSerializer(config, JSONSchema.of(Order.class)), order(1), order(2));
    }

    private static void writeProtobuf(String stream, SerializationFormat format, Codecs codec) {
        SerializerConfig config = config(stream, format, codec);
        write(stream, SerializerFactory.protobufSerializer(config, ProtobufSchema.of(Any.class)),
                Any.newBuilder().setTypeUrl("t").setValue(ByteString.copyFrom(new byte[] {0, -1, 0})).build(),
                Any.getDefaultInstance());
    }

    private static GenericRecord record(String schema, Object... values) {
        GenericRecord record = new GenericData.Record(new Schema.Parser().parse(schema));
        for (int i = 0; i < values.length; i++) {
            record.put(i, values[i]);
        }
        return record;
    }

    /** Two versions of one record type and another type between them; and three formats; each event twice. */
    private static void writeTypes() {
        String order = "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"t\",\"fields\":["
                + "{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"cents\",\"type\":\"long\"}";
        String payment = "{\"type\":\"record\",\"name\":\"Payment\",\"namespace\":\"t\",\"fields\":["
                + "{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"iban\",\"type\":\"string\",\"default\":\"DE0\"}]}";
        String note = ",{\"name\":\"note\",\"type\":\"string\",\"default\":\"none\"}";
        SerializerConfig config = config("types", SerializationFormat.Avro, Codecs.None, true);
        for (GenericRecord one : List.of(record(order + "]}", 1L, 100L), record(payment, 2L, "DE1"),
                record(order + note + "]}", 3L, 300L, "now"), record(payment, 4L, "DE2"))) {
            write("types", SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(one.getSchema())), one);
        }
        write("mixed", SerializerFactory.avroSerializer(config("mixed", SerializationFormat.Any, Codecs.None, true),
                AvroSchema.ofRecord(new Schema.Parser().parse(order + "]}"))), record(order + "]}", 1L, 100L));
        writeJson("mixed", SerializationFormat.Any, Codecs.GzipCompressor);
        writeProtobuf("mixed", SerializationFormat.Any, Codecs.None);
    }

    public static void main(String[] arguments) throws Exception {
        REGISTRY = URI.create(arguments[1]);
        SCOPE = arguments[2];
        ClientConfig client = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(SCOPE, client)) {
            FACTORY = factory;
            for (Codecs codec : Codecs.values()) {
                String name = codec == Codecs.None ? "none" : codec.name().replace("Compressor", "").toLowerCase();
                writeAvro("avro-" + name, SerializationFormat.Avro, codec);
                writeJson("json-" + name, SerializationFormat.Json, codec);
                writeProtobuf("protobuf-" + name, SerializationFormat.Protobuf, codec);
            }
            writeAvro("any", SerializationFormat.Any, Codecs.None);
            writeAvro("any", SerializationFormat.Any, Codecs.GzipCompressor);
            writeTypes();
            // and what no registry knows
            write("avro-none", new JavaSerializer<String>(), "an object");
        }
        System.out.println("written");
    }
}
