/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The first program of the virtual machine: loads the modules that reach the host's files, makes them the root (changes
 * stay in memory), runs the one program that its command line names, prints its exit code and switches the machine off.
 *
 * Kernel command line: everything after `--` is the program and its arguments. `lasthop_root=FOLDER` says what folder of
 * the host becomes the root, `lasthop_with=FOLDER:FOLDER` which are there beside it, at the same place.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void finish(int code)
{
	printf("\nlasthop-vm exit %d\n", code);
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	sync();
	reboot(RB_POWER_OFF);
	_exit(code);
}

static void stop(const char *format, ...)
{
	int error = errno;
	va_list arguments;

	va_start(arguments, format);
	printf("lasthop-vm: ");
	vprintf(format, arguments);
	va_end(arguments);
	printf(": %s\n", strerror(error));
	finish(125);
}

static void attach(const char *kind, const char *what, const char *where, unsigned long flags, const char *options)
{
	mkdir(where, 0755);
	if (mount(what, where, kind, flags, options))
		stop("cannot mount %s at %s", what, where);
}

static void make_folders(const char *path)
{
	char part[512];

	for (size_t end = 1; path[end - 1] && end < sizeof(part); end++) {
		if (path[end] && path[end] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)end, path);
		mkdir(part, 0755);
	}
}

/* A folder of the host, read-only: User Mode Linux reaches it itself, QEMU by what the folder is called there. */
static void attach_host(const char *tag, const char *folder, const char *where)
{
	mkdir(where, 0755);
	if (mount(tag, where, "9p", MS_RDONLY, "trans=virtio,version=9p2000.L,msize=512000,cache=loose") == 0)
		return;
	if (errno != ENODEV)
		stop("cannot mount the host's %s", folder);
	attach("hostfs", "none", where, MS_RDONLY, folder);
}

/* The console is a wire: what is written is what arrives. */
static void open_console(void)
{
	struct termios line;
	int fd = open("/dev/ttyS0", O_RDWR | O_NOCTTY);

	if (fd < 0)
		_exit(1);
	if (!tcgetattr(fd, &line)) {
		cfmakeraw(&line);
		tcsetattr(fd, TCSANOW, &line);
	}
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* /modules/00-netfs.ko, /modules/01-9pnet.ko, ..: in this order. */
static void load_modules(void)
{
	struct dirent **names;
	int count = scandir("/modules", &names, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		char path[512];
		int fd;

		if (names[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/modules/%s", names[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			stop("cannot load %s", path);
		close(fd);
	}
}

int main(int count, char **arguments)
{
	const char *root = getenv("lasthop_root");
	char *with = getenv("lasthop_with");
	int status;
	pid_t child;

	mkdir("/dev", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL))
		_exit(1);
	open_console();
	load_modules();
	attach("tmpfs", "changes", "/changes", 0, "mode=0755");
	attach_host("host", root ? root : "/", "/host");
	mkdir("/changes/upper", 0755);
	mkdir("/changes/work", 0755);
	attach("overlay", "root", "/root", 0, "lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work");
	if (chroot("/root") || chdir("/"))
		stop("cannot enter the host's files");
	attach("proc", "proc", "/proc", 0, NULL);
	attach("sysfs", "sysfs", "/sys", 0, NULL);
	attach("devtmpfs", "dev", "/dev", 0, NULL);
	/* As udev would; shells read from there. */
	if (symlink("/proc/self/fd", "/dev/fd") && errno != EEXIST)
		stop("cannot make /dev/fd");
	attach("devpts", "devpts", "/dev/pts", 0, NULL);
	attach("tmpfs", "shm", "/dev/shm", 0, NULL);
	attach("tmpfs", "run", "/run", 0, "mode=0755");
	attach("bpf", "bpf", "/sys/fs/bpf", 0, NULL);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL); /* not every kernel has it */
	with = with ? strtok(with, ":") : NULL;
	for (int number = 0; with; number++, with = strtok(NULL, ":")) {
		char tag[32];

		snprintf(tag, sizeof(tag), "with%d", number);
		make_folders(with);
		attach_host(tag, with, with);
	}
	if (count < 2)
		stop("no program was named");

	child = fork();
	if (child == 0) {
		int nothing = open("/dev/null", O_RDONLY);

		dup2(nothing, STDIN_FILENO);
		setsid();
		clearenv();
		setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
		setenv("HOME", "/root", 1);
		setenv("TMPDIR", "/tmp", 1); /* iperf3 asks for it */
		setenv("LANG", "C.UTF-8", 1);
		execvp(arguments[1], arguments + 1);
		stop("cannot run %s", arguments[1]);
	}
	/* Orphans of the program are ours; only its own end counts. */
	for (;;) {
		pid_t ended = wait(&status);

		if (ended == child || (ended < 0 && errno == ECHILD))
			break;
	}
	finish(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
