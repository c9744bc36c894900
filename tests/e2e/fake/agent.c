/* An agent for tests of what goes wrong. The name of its file says how it behaves. It speaks as much of OpenCode 1.x's
 * contract as a launch looks at: --version, serve --hostname H --port P, attach URL. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static const char *mode;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static void answer(int conn) {
    char request[4096] = {0};
    size_t got = 0;
    while (got + 1 < sizeof request && !strstr(request, "\r\n\r\n")) {
        ssize_t n = read(conn, request + got, sizeof request - 1 - got);
        if (n <= 0) return;
        got += (size_t)n;
    }
    const char *body = is("old") ? "{\"healthy\":true,\"version\":\"2.0.1\"}" : "{\"healthy\":true,\"version\":\"1.18.33\"}";
    const char *type = "application/json", *status = "200 OK";
    if (is("html")) type = "text/html", body = "<!doctype html>";
    if (!is("open") && !strstr(request, "Authorization: Basic ")) status = "401 Unauthorized", body = "";
    dprintf(conn, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status, type,
            strlen(body), body);
}

/* Leaves its parent, session, signals and name behind, as a tool that wants to outlive the launch would. */
static void stray(void) {
    if (fork()) return;
    setsid();
    if (fork()) _exit(0);
    for (int i = 1; i < 65; i++) signal(i, SIG_IGN);
    for (;;) pause();
}

static int serve(int port) {
    int on = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (is("exits")) return fprintf(stderr, "it does not like this machine\n"), 3;
    if (is("deaf"))
        for (;;) pause();
    if (is("stray")) stray();
    if (is("stubborn")) signal(SIGTERM, SIG_IGN);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, (struct sockaddr *)&at, sizeof at) || listen(s, is("full") ? 0 : 64)) return perror("listen"), 1;
    for (;;) {
        if (is("full")) { pause(); continue; }
        int conn = accept(s, NULL, NULL);
        if (conn < 0) continue;
        if (is("silent")) continue;
        answer(conn);
        close(conn);
    }
}

static void ask(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    char reply[256] = {0};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(s, (struct sockaddr *)&at, sizeof at)) return perror("connect");
    dprintf(s, "GET /global/health HTTP/1.1\r\nAuthorization: Basic x\r\n\r\n");
    if (read(s, reply, sizeof reply - 1) > 0 && strstr(reply, "200 OK")) printf("JOINED\r\n");
    close(s);
}

/* Talks to a port of its own beside the one that it was given. */
static void wander(void) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(s, (struct sockaddr *)&at, sizeof at) || listen(s, 1)) return perror("listen");
    getsockname(s, (struct sockaddr *)&at, &length);
    if (connect(c, (struct sockaddr *)&at, sizeof at)) return perror("connect");
    printf("WANDERS\r\n");
    fflush(stdout);
}

/* Overwrites its arguments and its environment, as a program does that gives itself a title. */
static void retitle(char **argv) {
    extern char **environ;
    char **last = environ;
    while (*last && last[1]) last++;
    char *end = *last ? *last + strlen(*last) : argv[0] + strlen(argv[0]);
    memset(argv[0], 'x', (size_t)(end - argv[0]));
    printf("RETITLED\r\n");
    fflush(stdout);
}

static int attach(char **argv, const char *url, int count, char **words) {
    struct termios raw;
    char key;
    struct stat project;
    if (is("stubborn")) signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN), signal(SIGINT, SIG_IGN);
    if (tcgetattr(0, &raw)) return perror("tcgetattr"), 1;
    cfmakeraw(&raw);
    tcsetattr(0, TCSANOW, &raw);
    /* Another screen, the mouse, pasted text in brackets, no cursor: what a client that is killed leaves on. */
    printf("\033[?1049h\033[?1003h\033[?1006h\033[?2004h\033[?25l");
    ask(atoi(strrchr(url, ':') + 1));
    for (int i = 0; i < count; i++) printf("word %s\r\n", words[i]);
    if (getenv("E2E_PASSED")) printf("passed %s\r\n", getenv("E2E_PASSED"));
    printf("cwd %s\r\n", getcwd(NULL, 0));
    printf("CLIENT %s\r\n", stat("marker-of-the-project", &project) ? "READY" : "SEES THE PROJECT");
    fflush(stdout);
    while (read(0, &key, 1) == 1) {
        if (key == 'q') return 7;
        if (key == 'w') wander();
        if (key == 't') retitle(argv);
        if (key == 'z') raise(SIGTSTP), tcsetattr(0, TCSANOW, &raw), printf("CLIENT BACK\r\n"), fflush(stdout);
        if (key == 3 && !is("stubborn")) return 0;
    }
    return 9;
}

int main(int argc, char **argv) {
    char *slash = strrchr(argv[0], '/');
    mode = slash ? slash + 1 : argv[0];
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        if (is("mute"))
            for (;;) pause();
        if (is("babble"))
            for (;;) puts("no version here");
        if (is("crash")) abort();
        return puts(is("unknown") ? "lildax vlocal" : "1.18.33"), 0;
    }
    if (argc > 5 && !strcmp(argv[1], "serve")) return serve(atoi(argv[5]));
    if (argc > 2 && !strcmp(argv[1], "attach")) return attach(argv, argv[2], argc - 3, argv + 3);
    return fprintf(stderr, "usage\n"), 1;
}
