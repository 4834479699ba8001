// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * labexec: run commands in a virtual machine over virtio-serial ports.
 *
 *   labexec agent PORT...                      in the machine: serve each port of that name
 *   labexec run [-i] [-t] [-r] [-w S] SOCKET... -- CMD...   outside: run CMD there
 *   labexec qmp SOCKET JSON                    send one QMP command, print its answer (60 s)
 *   labexec restart | poweroff                 in the machine: at once, devices shut down first
 *
 * run:  SOCKETs are the QEMU side of the ports; the first one that nobody uses is taken.
 *       -i  hand standard input over     -t  on a terminal of its own (implies -i)
 *       -r  CMD is expected to restart the machine: 0 when its agent is back (within -w)
 *       -w  seconds to wait for the machine's agent (60)
 *       Exit status is CMD's (128+N if signal N ended it), or 123 when the machine restarted,
 *       124 when its agent did not answer, 125 when the machine went away.
 *
 * The words of CMD arrive byte by byte, no shell in between. CMD is in its own session; it is
 * killed when the caller goes away. Output of background processes that outlive CMD is dropped.
 *
 * Wire: frames of a header and at most FRAME_MAX bytes. A port serves one session at a time; frames
 * of older sessions are ignored, a new request ends an abandoned session.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAGIC 0x31584c4fu
#define FRAME_MAX   3072u
#define REQUEST_MAX (128u * 1024)
#define RESEND_MS   1000
#define QMP_SECONDS 60
#define FD_INHERIT_MAX 64

enum {
	EXIT_RESTARTED = 123,
	EXIT_NO_ANSWER = 124,
	EXIT_GONE = 125,
};

enum frame_type {
	FRAME_BOOT,	/* agent: uint32_t that names this start of mine, which is new */
	FRAME_REQUEST,	/* caller: a struct request and its words begin */
	FRAME_MORE,	/* caller: they go on */
	FRAME_START,	/* caller: the request is complete, run it */
	FRAME_ACCEPT,	/* agent: it runs, in the start of this name */
	FRAME_STDIN,	/* caller: input; empty: end of file */
	FRAME_STDOUT,	/* agent */
	FRAME_STDERR,	/* agent */
	FRAME_SIGNAL,	/* caller: int32_t for CMD's process group */
	FRAME_WINDOW,	/* caller: struct winsize */
	FRAME_EXIT,	/* agent: int32_t exit status; the session is over */
};

struct frame {
	uint32_t magic;
	uint32_t type;
	uint32_t session;
	uint32_t len;
	uint8_t data[FRAME_MAX];
};

#define FRAME_HEAD offsetof(struct frame, data)

/* Then follow, each ended by a NUL: the working directory, the words of CMD. */
struct request {
	uint32_t tty;
	struct winsize window;
};

/* Collects frames from a byte stream. */
struct reader {
	struct frame frame;
	size_t have;
};

static const char *program = "labexec";

__attribute__((format(printf, 2, 3))) _Noreturn static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* All of it, or an error; waits when the other side is slow. */
static int write_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			if (poll(&pfd, 1, -1) > 0 && (pfd.revents & (POLLHUP | POLLERR)))
				return -EPIPE;
			continue;
		}
		if (n <= 0)
			return n ? -errno : -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int frame_send(int fd, enum frame_type type, uint32_t session, const void *data, size_t len)
{
	const uint8_t *p = data;

	do {
		struct frame frame = { .magic = FRAME_MAGIC, .type = type, .session = session };
		int ret;

		frame.len = (uint32_t)(len < FRAME_MAX ? len : FRAME_MAX);
		if (frame.len)
			memcpy(frame.data, p, frame.len);
		ret = write_all(fd, &frame, FRAME_HEAD + frame.len);
		if (ret)
			return ret;
		p += frame.len;
		len -= frame.len;
	} while (len);
	return 0;
}

/* 1: a frame is complete in r->frame; 0: not yet; -EPIPE: the other side closed. */
static int frame_read(int fd, struct reader *r)
{
	uint8_t *bytes = (uint8_t *)&r->frame;

	for (;;) {
		size_t want = FRAME_HEAD;
		ssize_t n;

		if (r->have >= FRAME_HEAD) {
			if (r->frame.magic != FRAME_MAGIC || r->frame.len > FRAME_MAX) {
				/* The rest of a broken-off frame: look for the next head. */
				memmove(bytes, bytes + 1, --r->have);
				continue;
			}
			want += r->frame.len;
			if (r->have == want) {
				r->have = 0;
				return 1;
			}
		}
		n = read(fd, bytes + r->have, want - r->have);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -EPIPE;
		r->have += (size_t)n;
	}
}

/* ---- in the machine ---- */

struct session {
	int port;
	uint32_t start;		/* names this run of the agent */
	uint32_t id;		/* 0: none */
	uint8_t request[REQUEST_MAX];
	size_t request_len;
	pid_t child;		/* 0: none */
	int child_fd;		/* pidfd */
	int in, out, err;	/* our ends; with a terminal, in == out and err is -1 */
	uint8_t pending[FRAME_MAX];
	size_t pending_len;
	bool pending_eof;
};

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void session_close(struct session *s)
{
	if (s->in == s->out)
		s->in = -1;
	fd_close(&s->in);
	fd_close(&s->out);
	fd_close(&s->err);
	fd_close(&s->child_fd);
	s->id = 0;
	s->child = 0;
	s->request_len = 0;
	s->pending_len = 0;
	s->pending_eof = false;
}

/* Nobody listens any more: end what runs for them. */
static void session_abandon(struct session *s)
{
	if (s->child) {
		kill(-s->child, SIGKILL);
		kill(s->child, SIGKILL);
		waitpid(s->child, NULL, 0);
	}
	session_close(s);
}

_Noreturn static void child_exec(const struct request *request, char *words, size_t len)
{
	static char *argv[REQUEST_MAX / 2];
	const char *dir = words;
	size_t argc = 0;
	sigset_t none;
	char *p;

	for (p = words + strlen(words) + 1; p < words + len; p += strlen(p) + 1)
		argv[argc++] = p;
	argv[argc] = NULL;
	for (int fd = 3; fd < FD_INHERIT_MAX; fd++)
		close(fd);
	if (chdir(dir) && chdir("/root") && chdir("/"))
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setenv("HOME", "/root", 1);
	setenv("USER", "root", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("TERM", request->tty ? "xterm-256color" : "dumb", 1);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: cannot run it here: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void session_fail(struct session *s, const char *text)
{
	int32_t status = 126;

	frame_send(s->port, FRAME_STDERR, s->id, text, strlen(text));
	frame_send(s->port, FRAME_EXIT, s->id, &status, sizeof(status));
	session_close(s);
}

static void session_start(struct session *s)
{
	struct request request;
	char *words = (char *)s->request + sizeof(request);
	size_t len;
	int in[2], out[2], err[2];

	if (s->child) {		/* said again before our answer arrived */
		frame_send(s->port, FRAME_ACCEPT, s->id, &s->start, sizeof(s->start));
		return;
	}
	if (s->request_len < sizeof(request) + 4 || s->request[s->request_len - 1]) {
		session_fail(s, "labexec: the request is incomplete or longer than 128 KiB\n");
		return;
	}
	len = s->request_len - sizeof(request);
	memcpy(&request, s->request, sizeof(request));
	if (strlen(words) + 1 >= len) {
		session_fail(s, "labexec: the request names no command\n");
		return;
	}

	frame_send(s->port, FRAME_ACCEPT, s->id, &s->start, sizeof(s->start));
	if (request.tty) {
		s->child = forkpty(&s->out, NULL, NULL, &request.window);
		if (!s->child)
			child_exec(&request, words, len);
		s->in = s->out;
	} else {
		if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
			session_fail(s, "labexec: no pipes left in the machine\n");
			return;
		}
		s->child = fork();
		if (!s->child) {
			setsid();
			dup2(in[0], STDIN_FILENO);
			dup2(out[1], STDOUT_FILENO);
			dup2(err[1], STDERR_FILENO);
			child_exec(&request, words, len);
		}
		close(in[0]);
		close(out[1]);
		close(err[1]);
		s->in = in[1];
		s->out = out[0];
		s->err = err[0];
		fcntl(s->err, F_SETFL, O_NONBLOCK);
	}
	if (s->child < 0) {
		s->child = 0;
		session_fail(s, "labexec: cannot fork in the machine\n");
		return;
	}
	fcntl(s->in, F_SETFL, O_NONBLOCK);
	fcntl(s->out, F_SETFL, O_NONBLOCK);
	s->child_fd = (int)syscall(SYS_pidfd_open, s->child, 0);
}

/* Pass on what is there; false when the pipe has ended. */
static bool output_pass(struct session *s, int fd, enum frame_type type)
{
	uint8_t buf[FRAME_MAX];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (frame_send(s->port, type, s->id, buf, (size_t)n))
			return false;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void session_reap(struct session *s)
{
	int status;
	int32_t code;

	if (waitpid(s->child, &status, WNOHANG) != s->child)
		return;
	if (s->out >= 0)
		output_pass(s, s->out, FRAME_STDOUT);
	if (s->err >= 0)
		output_pass(s, s->err, FRAME_STDERR);
	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	frame_send(s->port, FRAME_EXIT, s->id, &code, sizeof(code));
	session_close(s);
}

static void input_pass(struct session *s)
{
	ssize_t n;

	if (s->pending_len) {
		n = write(s->in, s->pending, s->pending_len);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {		/* CMD reads no more; that is its business */
			s->pending_eof = true;
			n = (ssize_t)s->pending_len;
		}
		s->pending_len -= (size_t)n;
		memmove(s->pending, s->pending + n, s->pending_len);
	}
	if (!s->pending_len && s->pending_eof && s->in != s->out)
		fd_close(&s->in);
}

static void session_frame(struct session *s, const struct frame *frame)
{
	int32_t number;

	if (frame->type == FRAME_REQUEST) {
		if (frame->session != s->id)
			session_abandon(s);
		s->id = frame->session;
		if (!s->child)
			s->request_len = 0;
	}
	if (!s->id || frame->session != s->id)
		return;
	if (frame->type == FRAME_REQUEST || frame->type == FRAME_MORE) {
		if (s->child)
			return;
		if (s->request_len + frame->len <= sizeof(s->request)) {
			memcpy(s->request + s->request_len, frame->data, frame->len);
			s->request_len += frame->len;
		} else {
			s->request_len = 0;
		}
		return;
	}
	switch (frame->type) {
	case FRAME_START:
		session_start(s);
		break;
	case FRAME_STDIN:
		memcpy(s->pending, frame->data, frame->len);
		s->pending_len = frame->len;
		s->pending_eof = !frame->len;
		if (s->in >= 0)
			input_pass(s);
		else
			s->pending_len = 0;
		break;
	case FRAME_SIGNAL:
		memcpy(&number, frame->data, sizeof(number));
		if (s->child && frame->len == sizeof(number))
			kill(-s->child, number);
		break;
	case FRAME_WINDOW:
		if (s->out >= 0 && frame->len == sizeof(struct winsize))
			ioctl(s->out, TIOCSWINSZ, frame->data);
		break;
	default:
		break;
	}
}

/* By the names that the kernel tells: the links of udev may come much later. */
static int port_open(const char *name)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		char path[300], found[64] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%63s", found) == 1 && !strcmp(found, name)) {
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return fd;
}

_Noreturn static void port_serve(const char *name)
{
	static struct session s = { .in = -1, .out = -1, .err = -1, .child_fd = -1 };
	static struct reader reader;
	struct timespec quiet = { .tv_nsec = 20000000 };
	struct timespec look = { .tv_sec = 1 };
	sigset_t connect_set;
	bool announced = false;

	prctl(PR_SET_NAME, "labexec");
	signal(SIGPIPE, SIG_IGN);
	if (getentropy(&s.start, sizeof(s.start)))
		s.start = (uint32_t)now_ms();
	sigemptyset(&connect_set);
	sigaddset(&connect_set, SIGIO);
	sigprocmask(SIG_BLOCK, &connect_set, NULL);
	do {
		s.port = port_open(name);
		if (s.port < 0)
			nanosleep(&quiet, NULL);
	} while (s.port < 0);
	fcntl(s.port, F_SETOWN, getpid());
	fcntl(s.port, F_SETFL, O_NONBLOCK | O_ASYNC);

	for (;;) {
		struct pollfd pfd[] = {
			{ .fd = s.port, .events = s.pending_len ? 0 : POLLIN },
			{ .fd = s.out, .events = POLLIN },
			{ .fd = s.err, .events = POLLIN },
			{ .fd = s.child_fd, .events = POLLIN },
			{ .fd = s.pending_len ? s.in : -1, .events = POLLOUT },
		};
		int ret;

		if (poll(pfd, 5, announced ? -1 : 0) < 0)
			continue;
		if (!announced && !(pfd[0].revents & POLLHUP)) {
			/* Not before the port is connected: that message may come after the port. */
			frame_send(s.port, FRAME_BOOT, 0, &s.start, sizeof(s.start));
			announced = true;
		}
		if ((pfd[0].revents & (POLLIN | POLLHUP)) == POLLIN) {
			while ((ret = frame_read(s.port, &reader)) > 0) {
				session_frame(&s, &reader.frame);
				if (s.pending_len)
					break;
			}
			if (ret == -EPIPE)
				pfd[0].revents |= POLLHUP;
		}
		if (pfd[0].revents & POLLHUP) {
			/*
			 * The caller is gone, and what it said last with it; a new one says its
			 * request again. It announces itself by SIGIO only.
			 */
			uint8_t stale[FRAME_MAX];

			session_abandon(&s);
			while (read(s.port, stale, sizeof(stale)) > 0)
				;
			reader.have = 0;
			sigtimedwait(&connect_set, NULL, &look);
			continue;
		}
		if (pfd[4].revents)
			input_pass(&s);
		if (pfd[1].revents && s.out >= 0 && !output_pass(&s, s.out, FRAME_STDOUT)) {
			if (s.in == s.out)
				s.in = -1;
			fd_close(&s.out);
		}
		if (pfd[2].revents && s.err >= 0 && !output_pass(&s, s.err, FRAME_STDERR))
			fd_close(&s.err);
		if (pfd[3].revents && s.child)
			session_reap(&s);
	}
}

static int agent_main(char **ports)
{
	for (; *ports; ports++) {
		pid_t pid = fork();

		if (pid < 0)
			die(1, "cannot fork: %s", strerror(errno));
		if (!pid)
			port_serve(*ports);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}

/* ---- outside ---- */

static struct termios terminal_before;
static bool terminal_raw;

static void terminal_restore(void)
{
	if (terminal_raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

static void terminal_take(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal_before))
		return;
	raw = terminal_before;
	cfmakeraw(&raw);
	terminal_raw = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	atexit(terminal_restore);
}

static int socket_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		die(1, "socket path %s is longer than %zu", path, sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* QEMU serves one caller on a socket; the lock file beside it says who is first. */
static int socket_lock(const char *path, int operation)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (flock(fd, operation)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int socket_take(char **paths, int count)
{
	int i = 0;

	for (; i < count; i++)
		if (socket_lock(paths[i], LOCK_EX | LOCK_NB) >= 0)
			break;
	if (i == count) {
		i = 0;
		if (socket_lock(paths[i], LOCK_EX) < 0)
			die(EXIT_GONE, "cannot lock %s: %s", paths[i], strerror(errno));
	}
	return socket_connect(paths[i]);
}

static void request_send(int fd, uint32_t session, bool tty, char **words)
{
	static uint8_t data[REQUEST_MAX];
	struct request request = { .tty = tty };
	size_t first, len = sizeof(request);
	char dir[2048];

	if (tty)
		ioctl(STDIN_FILENO, TIOCGWINSZ, &request.window);
	memcpy(data, &request, sizeof(request));
	if (!getcwd(dir, sizeof(dir)))
		strcpy(dir, "/");
	strcpy((char *)data + len, dir);
	len += strlen(dir) + 1;
	for (; *words; words++) {
		size_t n = strlen(*words) + 1;

		if (len + n > sizeof(data))
			die(1, "the command's words are longer than %u bytes", REQUEST_MAX);
		memcpy(data + len, *words, n);
		len += n;
	}
	first = len < FRAME_MAX ? len : FRAME_MAX;
	if (frame_send(fd, FRAME_REQUEST, session, data, first) ||
	    (len > first && frame_send(fd, FRAME_MORE, session, data + first, len - first)) ||
	    frame_send(fd, FRAME_START, session, NULL, 0))
		die(EXIT_GONE, "the machine went away");
}

/* A signal of ours goes to CMD, which decides; CMD's exit then ends us. */
static void signal_pass(int signals, int fd, uint32_t session)
{
	struct signalfd_siginfo info;
	struct winsize window;
	int32_t number;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return;
	number = (int32_t)info.ssi_signo;
	if (number == SIGWINCH) {
		if (!ioctl(STDIN_FILENO, TIOCGWINSZ, &window))
			frame_send(fd, FRAME_WINDOW, session, &window, sizeof(window));
		return;
	}
	frame_send(fd, FRAME_SIGNAL, session, &number, sizeof(number));
}

static int run_main(int argc, char **argv)
{
	bool input = false, tty = false, restarts = false, accepted = false;
	int wait_s = 60, opt, count = 0, fd, signals;
	struct reader reader = { 0 };
	int64_t deadline, resend;
	uint32_t session, start = 0;
	sigset_t set;

	while ((opt = getopt(argc, argv, "+itrw:")) != -1) {
		switch (opt) {
		case 't':
			tty = true;
			input = true;
			break;
		case 'i':
			input = true;
			break;
		case 'r':
			restarts = true;
			break;
		case 'w':
			wait_s = atoi(optarg);
			break;
		default:
			exit(1);
		}
	}
	/* getopt stops before the first socket, or swallows a "--" that has none before it. */
	argv += optind;
	while (argv[count] && strcmp(argv[count], "--"))
		count++;
	if (!count || !argv[count] || !argv[count + 1])
		die(1, "usage: labexec run [-i] [-t] [-r] [-w S] SOCKET... -- CMD...");

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	signal(SIGPIPE, SIG_IGN);

	fd = socket_take(argv, count);
	if (fd < 0)
		die(EXIT_GONE, "the machine of %s does not run: %s", argv[0], strerror(errno));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	do {
		if (getentropy(&session, sizeof(session)))
			session = (uint32_t)getpid();
	} while (!session);
	request_send(fd, session, tty, argv + count + 1);
	if (tty)
		terminal_take();
	deadline = now_ms() + wait_s * 1000;
	resend = now_ms() + RESEND_MS;
	/* Until CMD runs, a signal ends us as usual. */
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	for (;;) {
		struct pollfd pfd[] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = accepted && input ? STDIN_FILENO : -1, .events = POLLIN },
			{ .fd = accepted ? signals : -1, .events = POLLIN },
		};
		int ret, unread, timeout = accepted && !restarts ? -1 : 100;

		if (poll(pfd, 3, timeout) < 0 && errno != EINTR)
			die(1, "poll: %s", strerror(errno));
		if (accepted && restarts && now_ms() > deadline)
			die(EXIT_NO_ANSWER, "the machine did not come back within %d s", wait_s);
		if (!accepted && now_ms() > deadline)
			die(EXIT_NO_ANSWER, "the machine's agent did not answer within %d s", wait_s);
		/* nothing is sent to who takes nothing: it would be waited for without end */
		if (!accepted && now_ms() > resend) {
			if (!ioctl(fd, SIOCOUTQ, &unread) && !unread)
				request_send(fd, session, tty, argv + count + 1);
			resend = now_ms() + RESEND_MS;
		}
		while ((ret = frame_read(fd, &reader)) > 0) {
			struct frame *frame = &reader.frame;
			int32_t status;

			if (frame->type == FRAME_BOOT && accepted && frame->len == sizeof(start) &&
			    memcmp(frame->data, &start, sizeof(start))) {
				if (!restarts)
					die(EXIT_RESTARTED, "the machine restarted");
				return 0;
			}
			if (frame->session != session)
				continue;
			switch (frame->type) {
			case FRAME_ACCEPT:
				if (!accepted)
					sigprocmask(SIG_BLOCK, &set, NULL);
				if (frame->len == sizeof(start))
					memcpy(&start, frame->data, sizeof(start));
				accepted = true;
				break;
			case FRAME_STDOUT:
				write_all(STDOUT_FILENO, frame->data, frame->len);
				break;
			case FRAME_STDERR:
				write_all(STDERR_FILENO, frame->data, frame->len);
				break;
			case FRAME_EXIT:
				memcpy(&status, frame->data, sizeof(status));
				/* With -r the command may well end before the machine does. */
				if (!restarts)
					return status;
				if (status)
					return status;
				break;
			default:
				break;
			}
		}
		if (ret == -EPIPE)
			die(EXIT_GONE, "the machine went away");
		if (pfd[1].revents) {
			uint8_t buf[FRAME_MAX];
			ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

			if (n <= 0)
				input = false;
			frame_send(fd, FRAME_STDIN, session, buf, n > 0 ? (size_t)n : 0);
		}
		if (pfd[2].revents)
			signal_pass(signals, fd, session);
	}
}

/* ---- QMP ---- */

/* The next line that answers a command (events pass by); NULL when QEMU closed or said nothing. */
static char *qmp_answer(FILE *stream)
{
	static char *line;
	static size_t size;

	while (getline(&line, &size, stream) > 0)
		if (!strncmp(line, "{\"return\"", 9) || !strncmp(line, "{\"error\"", 8) ||
		    !strncmp(line, "{\"QMP\"", 6))
			return line;
	return NULL;
}

static _Noreturn void qmp_failed(const char *path, const char *json)
{
	if (errno == EAGAIN)
		die(EXIT_NO_ANSWER, "QEMU did not answer %s on %s within %d s", json, path,
		    QMP_SECONDS);
	die(EXIT_GONE, "QEMU closed %s before it answered %s", path, json);
}

static int qmp_main(const char *path, const char *json)
{
	struct timeval patience = { .tv_sec = QMP_SECONDS };
	const char *hello = "{\"execute\":\"qmp_capabilities\"}\n";
	FILE *stream;
	char *answer;
	int fd;

	if (socket_lock(path, LOCK_EX) < 0)
		die(EXIT_GONE, "cannot lock %s: %s", path, strerror(errno));
	fd = socket_connect(path);
	if (fd < 0)
		die(EXIT_GONE, "no QEMU serves %s: %s", path, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	stream = fdopen(fd, "r");
	errno = 0;
	if (!qmp_answer(stream) || write_all(fd, hello, strlen(hello)) || !qmp_answer(stream) ||
	    write_all(fd, json, strlen(json)) || write_all(fd, "\n", 1))
		qmp_failed(path, json);
	answer = qmp_answer(stream);
	if (!answer)
		qmp_failed(path, json);
	fputs(answer, stdout);
	return !strncmp(answer, "{\"error\"", 8);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "agent"))
		return agent_main(argv + 2);
	if (argc > 2 && !strcmp(argv[1], "run"))
		return run_main(argc - 1, argv + 1);
	if (argc == 4 && !strcmp(argv[1], "qmp"))
		return qmp_main(argv[2], argv[3]);
	if (argc == 2 && !strcmp(argv[1], "restart"))
		return reboot(RB_AUTOBOOT);
	if (argc == 2 && !strcmp(argv[1], "poweroff"))
		return reboot(RB_POWER_OFF);
	die(1, "usage: labexec agent PORT... | run ... SOCKET... -- CMD... | qmp SOCKET JSON | restart | poweroff");
}
