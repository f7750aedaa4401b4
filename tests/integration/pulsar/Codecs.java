import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/** Codecs serviceUrl (topic codec way)..: writes messages of every kind to each topic, compressed so, and single,
 * in batches, in chunks, or in batches with long keys. */
public class Codecs {
    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        for (int i = 1; i < arguments.length; i += 3) {
            String way = arguments[i + 2];
            Producer<byte[]> producer = builder(client, way)
                    .topic(arguments[i])
                    .compressionType(CompressionType.valueOf(arguments[i + 1]))
                    .create();
            for (int number = 0; number < 40; number++) {
                write(producer.newMessage(), number, way).sendAsync();
                Thread.sleep(number % 3 == 0 ? 1 : 0); // messages of many times
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

    private static ProducerBuilder<byte[]> builder(PulsarClient client, String way) {
        if (way.equals("chunks")) {
            return client.newProducer().enableBatching(false).enableChunking(true).chunkMaxMessageSize(700);
        }
        return client.newProducer()
                .enableBatching(!way.equals("single"))
                .batchingMaxMessages(7)
                .batchingMaxPublishDelay(1, TimeUnit.HOURS);
    }

    private static TypedMessageBuilder<byte[]> write(TypedMessageBuilder<byte[]> message, int number, String way) {
        if (number % 2 == 0) {
            String key = "key-" + number % 6;
            message.key(way.equals("keys") ? key.repeat(4000) : key);
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
        if (way.equals("chunks")) { // what cannot be compressed
            byte[] value = new byte[number % 7 * 400];
            new Random(number).nextBytes(value);
            return message.value(value);
        }
        return message.value((("message " + number + " ").repeat(number % 7 * 40)).getBytes());
    }
}
