import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Txn serviceUrl topic: three messages, two aborted, two committed in two open transactions, and one more. */
public class Txn {
    private static PulsarClient client;

    private static Transaction begin() throws Exception {
        return client.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
    }

    private static void send(Producer<byte[]> producer, Transaction transaction, String text, int count) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            TypedMessageBuilder<byte[]> message =
                    transaction == null ? producer.newMessage() : producer.newMessage(transaction);
            sent.add(message.value((text + i).getBytes()).sendAsync());
        }
        producer.flush();
        for (CompletableFuture<MessageId> one : sent) {
            one.get();
        }
    }

    public static void main(String[] arguments) throws Exception {
        client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).build();
        Producer<byte[]> producer = client.newProducer()
                .topic(arguments[1])
                .enableBatching(Boolean.parseBoolean(arguments[2]))
                .sendTimeout(0, TimeUnit.SECONDS)
                .create();
        send(producer, null, "plain", 3);
        Transaction aborted = begin();
        Transaction committed = begin();
        send(producer, aborted, "aborted", 2);
        send(producer, committed, "committed", 2);
        aborted.abort().get();
        send(producer, null, "between", 1);
        committed.commit().get();
        client.close();
    }
}
