/* Stands in for `git` on the PATH of the tests: appends one record to the file `log` beside it, then becomes git.
 *
 * A record is a run of fields, each with a letter before it and a NUL after it, closed by an empty field:
 *   C the current folder, A an argument, E a variable (NAME=value of GIT_*, the name alone of all others).
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#define ROOM (1 << 20)

extern char **environ;
static char record[ROOM];
static size_t used;

static void put(char letter, const char *text, size_t length) {
    if (used + length + 3 > ROOM)
        return;
    record[used++] = letter;
    memcpy(record + used, text, length);
    used += length;
    record[used++] = '\0';
}

int main(int count, char **words) {
    char own[PATH_MAX], folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 5);
    if (length > 0 && getcwd(folder, sizeof folder) != NULL) {
        own[length] = '\0';
        strcpy(strrchr(own, '/') + 1, "log");
        put('C', folder, strlen(folder));
        for (int each = 1; each < count; each++)
            put('A', words[each], strlen(words[each]));
        for (char **each = environ; *each != NULL; each++)
            put('E', *each, strncmp(*each, "GIT_", 4) == 0 ? strlen(*each) : strcspn(*each, "="));
        record[used++] = '\0';
        int log = open(own, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (log >= 0) {
            signal(SIGXFSZ, SIG_IGN); /* a test may allow no more than short files */
            ssize_t written = write(log, record, used);
            (void)written;
            close(log);
            signal(SIGXFSZ, SIG_DFL);
        }
    }
    words[0] = REAL_GIT;
    execv(REAL_GIT, words);
    execv("/bin/git", words); /* in an image that has it there */
    perror(REAL_GIT);
    return 127;
}
