import com.fasterxml.jackson.annotation.JsonFormat;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Base64;
import java.util.Calendar;
import java.util.Date;
import java.util.GregorianCalendar;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TimeZone;
import java.util.UUID;
import org.apache.pulsar.client.api.Schema;

/**
 * Prints a line for each type that JSON schemas of Pulsar's Java client know: its name, the schema and the payload as
 * base64, with tabs between them. No broker is needed. test_jackson.py says how its lines became java_json.json.
 */
public class JacksonVectors {
    private static final Instant NOON = Instant.parse("2026-11-20T12:00:00.123456789Z");

    public enum Color { RED, GREEN }

    public static class Inner { public int x = 1; }

    public static class Node { public int v = 1; public Node next; }

    public static class Flags {
        private boolean isOpen = true;
        private Boolean isPaid = true;

        public boolean isOpen() { return isOpen; }

        public void setOpen(boolean open) { isOpen = open; }

        public Boolean getIsPaid() { return isPaid; }

        public void setIsPaid(Boolean paid) { isPaid = paid; }
    }

    public static class Types {
        public boolean aBoolean = true;
        public byte aByte = -128;
        public short aShort = 32767;
        public int anInt = Integer.MIN_VALUE;
        public long aLong = Long.MAX_VALUE;
        public float aFloat = 1.5f;
        public double aDouble = 1e300;
        public char aChar = 'ß';
        public String text = "Zoë";
        public Color color = Color.GREEN;
        public byte[] bytes = {0, -1, 65};
        public java.nio.ByteBuffer buffer = java.nio.ByteBuffer.wrap(new byte[] {0, -1, 65});
        public char[] chars = {'a', 'b'};
        public int[] ints = {1, 2};
        public boolean[] booleans = {true};
        public double[] doubles = {1.5};
        public List<BigDecimal> prices = List.of(new BigDecimal("1.50"));
        public Set<String> tags = Set.of("t");
        public Inner[] inners = {new Inner()};
        public Inner inner = new Inner();
        public Map<String, Integer> byText = Map.of("a", 1);
        public Map<Integer, String> byInt = Map.of(-7, "seven");
        public Map<Long, Inner> byLong = Map.of(Long.MAX_VALUE, new Inner());
        public Map<Color, Integer> byColor = Map.of(Color.RED, 1);
        public Map<UUID, Integer> byUuid = Map.of(new UUID(1, 2), 1);
        public Map<LocalDate, Integer> byDay = Map.of(LocalDate.of(2026, 11, 20), 1);
        public Map<Integer, Map<Boolean, Instant>> nested = Map.of(1, Map.of(true, NOON));
        public BigDecimal price = new BigDecimal("12.50");
        public BigDecimal thousands = new BigDecimal("1E+3");
        public BigInteger big = new BigInteger("123456789012345678901234567890");
        public UUID uuid = new UUID(1, 2);
        public URI uri = URI.create("http://a/b");
        public Optional<String> maybe = Optional.of("x");
        public Locale locale = Locale.GERMANY;
        public Object any = Map.of("a", new BigDecimal("1.50"));
        public Node self = node();
    }

    public static class Times {
        public Instant instant = NOON;
        public Instant epoch = Instant.EPOCH;
        public Instant nanos = Instant.ofEpochSecond(0, 5);
        public Instant whole = Instant.ofEpochSecond(-1);
        public LocalDate day = LocalDate.of(2026, 2, 28);
        public LocalTime minute = LocalTime.of(10, 1);
        public LocalTime second = LocalTime.of(10, 1, 2);
        public LocalTime nano = LocalTime.of(10, 1, 2, 3004005);
        public LocalDateTime wall = LocalDateTime.of(2026, 11, 20, 10, 0);
        public LocalDateTime wallNanos = LocalDateTime.of(1969, 11, 20, 10, 0, 1, 123456789);
        public ZonedDateTime zoned = NOON.atZone(ZoneId.of("Europe/Vienna"));
        public OffsetDateTime offset = NOON.atOffset(ZoneOffset.ofHours(2));
        public Duration took = Duration.ofMillis(1500);
        public Date date = new Date(1795168800123L);
        public java.sql.Date sqlDate = new java.sql.Date(1795132800000L);
        public java.sql.Time sqlTime = java.sql.Time.valueOf("10:01:02");
        public java.sql.Timestamp timestamp = new java.sql.Timestamp(1795168800123L);
        public Calendar calendar = calendar();
        @JsonFormat(shape = JsonFormat.Shape.STRING)
        public Instant textInstant = NOON;
        @JsonFormat(shape = JsonFormat.Shape.STRING)
        public LocalDate textDay = LocalDate.of(2026, 11, 20);
        @JsonFormat(shape = JsonFormat.Shape.STRING)
        public Date textDate = new Date(1795168800123L);
        @JsonFormat(without = JsonFormat.Feature.WRITE_DATE_TIMESTAMPS_AS_NANOSECONDS)
        public Instant millis = NOON;
    }

    public static class Before1970 { public Instant at = Instant.ofEpochSecond(-2, 500_000_000); }

    public static class Renamed {
        public int id = 1;
        @JsonProperty("unit_price")
        public Double unitPrice = 2.5;
    }

    private static Node node() {
        Node node = new Node();
        node.next = new Node();
        return node;
    }

    private static Calendar calendar() {
        Calendar calendar = new GregorianCalendar(TimeZone.getTimeZone("UTC"));
        calendar.setTimeInMillis(1795168800123L);
        return calendar;
    }

    private static <T> void line(String name, Class<T> type, T value) {
        Schema<T> schema = Schema.JSON(type);
        String text = schema.getSchemaInfo().getSchemaDefinition().replaceAll("\\s+", "");
        System.out.println("vector\t" + name + "\t" + base64(text.getBytes(StandardCharsets.UTF_8)) + "\t"
                + base64(schema.encode(value)));
    }

    private static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    public static void main(String[] args) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        line("types", Types.class, new Types());
        line("times", Times.class, new Times());
        line("flags", Flags.class, new Flags());
        line("before-1970", Before1970.class, new Before1970());
        line("renamed", Renamed.class, new Renamed());
        Node[] nodes = {node()};
        line("node", Node.class, nodes[0]);
        line("bare-string", String.class, "Zoë");
        line("bare-int", Integer.class, 7);
        line("bare-long", Long.class, Long.MIN_VALUE);
        line("bare-double", Double.class, 1.5);
        line("bare-boolean", Boolean.class, true);
        line("bare-enum", Color.class, Color.GREEN);
        line("bare-char", Character.class, 'c');
        line("bare-ints", int[].class, new int[] {1, 2});
        line("bare-texts", String[].class, new String[] {"a"});
        line("bare-bytes", byte[].class, new byte[] {0, -1, 65});
        line("bare-nodes", Node[].class, nodes);
        line("bare-map", Map.class, Map.of("a", 1));
        line("bare-decimal", BigDecimal.class, new BigDecimal("1.50"));
        line("bare-instant", Instant.class, NOON);
        line("bare-day", LocalDate.class, LocalDate.of(2026, 11, 20));
        line("bare-date", Date.class, new Date(1795168800123L));
        line("bare-uuid", UUID.class, new UUID(1, 2));
    }
}
