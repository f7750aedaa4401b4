import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/** Codecs serviceUrl (topic codec batching)..: writes messages of every kind to each topic, compressed so. */
public class Codecs {
    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        for (int i = 1; i < arguments.length; i += 3) {
            Producer<byte[]> producer = client.newProducer()
                    .topic(arguments[i])
                    .compressionType(CompressionType.valueOf(arguments[i + 1]))
                    .enableBatching(Boolean.parseBoolean(arguments[i + 2]))
                    .batchingMaxMessages(7)
                    .batchingMaxPublishDelay(1, java.util.concurrent.TimeUnit.HOURS)
                    .create();
            for (int number = 0; number < 40; number++) {
                write(producer.newMessage(), number).sendAsync();
            }
            producer.flush();
            // alone in its batch, or in none: nothing is compressed
            producer.newMessage().value(new byte[0]).sendAsync();
            producer.flush();
            producer.newMessage().key("dead").value(null).sendAsync();
            producer.flush();
            producer.close();
        }
        client.close();
    }

    private static TypedMessageBuilder<byte[]> write(TypedMessageBuilder<byte[]> message, int number) {
        if (number % 2 == 0) {
            message.key("key-" + number % 6);
        } else if (number % 3 == 0) {
            message.keyBytes(new byte[] {(byte) number, 0, -1});
        }
        if (number % 5 == 1) {
            message.property("n", "" + number).property("ü", "ß").property("empty", "");
        }
        if (number % 5 == 2) {
            message.eventTime(1_600_000_000_000L + number).orderingKey(new byte[] {1, (byte) number});
        }
        if (number % 8 == 3) {
            return message.value(new byte[0]);
        }
        if (number % 8 == 4) {
            return message.value(null);
        }
        return message.value((("message " + number + " ").repeat(number % 7 * 40)).getBytes());
    }
}
