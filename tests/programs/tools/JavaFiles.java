import java.io.FileOutputStream;
import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.logging.FileHandler;
import java.util.logging.Formatter;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * Ways to use a file in Java, by their names: JavaFiles FILE WAY...
 *
 * Whatever fails ends the program with Java's own message.
 */
public final class JavaFiles {
    private interface Way {
        void use(Path file) throws Exception;
    }

    private static final Map<String, Way> WAYS = Map.ofEntries(
        Map.entry("FileOutputStream", file -> new FileOutputStream(file.toFile()).close()),
        Map.entry("FileOutputStream-append", JavaFiles::streamAppends),
        Map.entry("FileWriter-append", JavaFiles::writerAppends),
        Map.entry("newBufferedWriter-append", JavaFiles::bufferedWriterAppends),
        Map.entry("writeString", file -> Files.writeString(file, "gone\n")),
        Map.entry("writeString-append",
            file -> Files.writeString(file, "more\n", StandardOpenOption.APPEND)),
        Map.entry("RandomAccessFile-end", file -> randomAccess(file, true)),
        Map.entry("RandomAccessFile-start", file -> randomAccess(file, false)),
        Map.entry("FileChannel-append", JavaFiles::channelAppends),
        Map.entry("FileChannel-position", JavaFiles::channelWritesAtSize),
        Map.entry("FileChannel-transferTo", JavaFiles::channelTransfers),
        Map.entry("FileChannel-map", JavaFiles::channelMaps),
        Map.entry("FileChannel-lock", JavaFiles::channelLocks),
        Map.entry("Files-copy", file -> Files.copy(file, beside(file, "-copy"))),
        Map.entry("Files-move", file ->
            Files.move(file, beside(file, "-moved"), StandardCopyOption.ATOMIC_MOVE)),
        Map.entry("Files-delete", Files::delete),
        Map.entry("FileHandler-append", JavaFiles::logs));

    public static void main(String[] arguments) throws Exception {
        Path file = Path.of(arguments[0]);
        for (int at = 1; at < arguments.length; at++) {
            WAYS.get(arguments[at]).use(file);
        }
    }

    private static Path beside(Path file, String suffix) {
        return file.resolveSibling(file.getFileName() + suffix);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    private static ByteBuffer more() {
        return ByteBuffer.wrap("more\n".getBytes());
    }

    private static void streamAppends(Path file) throws IOException {
        try (var stream = new FileOutputStream(file.toFile(), true)) {
            stream.write(more().array());
        }
    }

    private static void writerAppends(Path file) throws IOException {
        try (var writer = new PrintWriter(new FileWriter(file.toFile(), true), true)) {
            writer.print("more\n");
        }
    }

    private static void bufferedWriterAppends(Path file) throws IOException {
        var options = new StandardOpenOption[] {
            StandardOpenOption.CREATE, StandardOpenOption.APPEND};
        try (var writer = Files.newBufferedWriter(file, options)) {
            writer.write("more\n");
        }
    }

    private static void randomAccess(Path file, boolean atEnd) throws IOException {
        try (var access = new RandomAccessFile(file.toFile(), "rw")) {
            access.seek(atEnd ? access.length() : 0);
            access.write(more().array());
        }
    }

    private static void channelAppends(Path file) throws IOException {
        try (var channel = FileChannel.open(file, StandardOpenOption.APPEND)) {
            channel.write(more());
            channel.force(true);
            check(channel.position() == channel.size(), "the position is not the size");
        }
    }

    private static void channelWritesAtSize(Path file) throws IOException {
        try (var channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.position(channel.size());
            channel.write(more());
        }
    }

    private static void channelTransfers(Path file) throws IOException {
        var options = new StandardOpenOption[] {
            StandardOpenOption.CREATE, StandardOpenOption.APPEND};
        try (var from = FileChannel.open(file);
                var to = FileChannel.open(beside(file, "-transferred"), options)) {
            check(from.transferTo(0, from.size(), to) == from.size(), "it is not whole");
        }
    }

    private static void channelMaps(Path file) throws IOException {
        try (var channel = FileChannel.open(file)) {
            var mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            check(mapped.get(0) == 'k', "it is not what is there");
        }
    }

    private static void channelLocks(Path file) throws IOException {
        try (var channel = FileChannel.open(file, StandardOpenOption.APPEND);
                var lock = channel.lock()) {
            check(lock.isValid(), "it is not locked");
            channel.write(more());
        }
    }

    private static void logs(Path file) throws IOException {
        var handler = new FileHandler(file.toString(), true);
        handler.setFormatter(new Formatter() {
            @Override
            public String format(LogRecord record) {
                return record.getMessage() + "\n";
            }
        });
        var logger = Logger.getAnonymousLogger();
        logger.setUseParentHandlers(false);
        logger.addHandler(handler);
        logger.info("more");
        handler.close();
    }
}
