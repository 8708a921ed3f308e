// SPDX-License-Identifier: GPL-2.0
#include "ktap.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_TIMEOUT_S	40
#define PATIENCE_MAX	100
#define SHOWN_FAILURES	3
#define SHOWN_RULES	16
#define EXIT_SKIP	4
#define PROGRESS_CASES	16
#define HEXDUMP_SIZE	1024
#define EXPECTED	"; expected "

struct ktap_case {
	void (*run)(const void *arg);
	const void *arg;
	char *name;
};

enum kernel ktap_kernel;

static struct ktap_case *cases;
static unsigned int case_count;
static unsigned int failures;
static unsigned int patience = 1;	/* factor of a case's time limit */
static const char *console;	/* where to say how far we are, or NULL */
static char *skip_reason;	/* shared with the case's process */

#define SKIP_REASON_SIZE 256

void ktap_add(void (*run)(const void *arg), const void *arg,
	      const char *format, ...)
{
	struct ktap_case *new;
	va_list list;

	cases = realloc(cases, (case_count + 1) * sizeof(*cases));
	if (!cases)
		exit(2);
	new = &cases[case_count++];
	new->run = run;
	new->arg = arg;
	va_start(list, format);
	if (vasprintf(&new->name, format, list) < 0)
		exit(2);
	va_end(list);
}

void ktap_diag(const char *format, ...)
{
	va_list list;

	printf("# ");
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
}

/* Take the marks out of text; the first is the rule that the caller meant. */
static void take_rule(char *text, char *rule, size_t size)
{
	char *begin, *end;

	rule[0] = '\0';
	while ((begin = strchr(text, RULE_BEGIN)) && (end = strchr(begin, RULE_END))) {
		*end = '\0';
		if (!rule[0])
			snprintf(rule, size, "%s", begin + 1);
		memmove(begin, end + 1, strlen(end + 1) + 1);
	}
}

/* Is this the first failure against the rule? */
static bool first_of(const char *rule)
{
	static char seen[SHOWN_RULES][RULE_SIZE];

	for (unsigned int i = 0; i < SHOWN_RULES; i++) {
		if (!seen[i][0]) {
			snprintf(seen[i], RULE_SIZE, "%s", rule);
			return true;
		}
		if (!strcmp(seen[i], rule))
			return false;
	}
	return false;
}

static bool fail(bool show, const char *format, va_list list)
{
	char text[1024], rule[RULE_SIZE], *expected;

	vsnprintf(text, sizeof(text), format, list);
	take_rule(text, rule, sizeof(rule));
	failures++;
	if (!(rule[0] && first_of(rule)) && !show)
		return false;
	printf("# FAIL: %s\n", text);
	if (rule[0])
		printf("# rule: %s\n", rule);
	expected = strstr(text, EXPECTED);
	if (expected) {
		*expected = '\0';
		printf("# expected: %s\n", expected + strlen(EXPECTED));
	}
	printf("# seen: %s\n", text);
	return true;
}

bool ktap_fail(const char *format, ...)
{
	va_list list;
	bool shown;

	va_start(list, format);
	shown = fail(failures < SHOWN_FAILURES, format, list);
	va_end(list);
	return shown;
}

unsigned int ktap_failures(void)
{
	return failures;
}

static void __noreturn end_case(int status)
{
	if (failures > SHOWN_FAILURES)
		ktap_diag("%u more failures like these", failures - SHOWN_FAILURES);
	fflush(stdout);
	_exit(failures ? 1 : status);
}

void ktap_skip(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(skip_reason, SKIP_REASON_SIZE, format, list);
	va_end(list);
	end_case(EXIT_SKIP);
}

void ktap_stop(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fail(true, format, list);
	va_end(list);
	end_case(1);
}

void ktap_hexdump(const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t at = 0; at < size; at += 16) {
		if (at == HEXDUMP_SIZE) {
			ktap_diag("  and %zu bytes more", size - at);
			return;
		}
		printf("#   %04zx:", at);
		for (size_t i = at; i < at + 16 && i < size; i++)
			printf("%s%02x", i % 8 ? " " : "  ", byte[i]);
		printf("\n");
	}
}

/* Run one case in a child; returns its wait status. */
static int run_case(const struct ktap_case *test)
{
	pid_t child;
	int status;

	skip_reason[0] = '\0';
	fflush(stdout);
	child = fork();
	if (child < 0) {
		ktap_diag("fork: %m");
		return 1 << 8;
	}
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(CASE_TIMEOUT_S * patience);
		test->run(test->arg);
		end_case(0);
	}
	while (waitpid(child, &status, 0) != child)
		;
	return status;
}

static bool report(unsigned int number, const char *name, int status)
{
	if (WIFSIGNALED(status)) {
		if (WTERMSIG(status) == SIGALRM)
			ktap_fail(RULE_CASE_ENDS "not done after %u s", CASE_TIMEOUT_S * patience);
		else
			ktap_fail(RULE_CASE_ENDS "killed by signal %d", WTERMSIG(status));
		failures = 0;		/* the next case has its own process */
	} else if (WEXITSTATUS(status) == EXIT_SKIP) {
		printf("ok %u %s # SKIP %s\n", number, name, skip_reason);
		return true;
	} else if (!WEXITSTATUS(status)) {
		printf("ok %u %s\n", number, name);
		return true;
	}
	printf("not ok %u %s\n", number, name);
	return false;
}

/*
 * Who watches the console of a virtual machine takes silence for a hang. On a busy
 * host that machine's time, counted in ticks, goes slowly: all limits here are in
 * it, and many cases within theirs are minutes of silence.
 */
static void say_progress(unsigned int number, unsigned int planned)
{
	int fd = open(console, O_WRONLY | O_APPEND | O_CLOEXEC);
	char text[128];
	int size = snprintf(text, sizeof(text), "<6>%s: %u of %u cases\n",
			    program_invocation_short_name, number, planned);

	if (fd < 0)
		return;
	/* In one piece, and without a look at the offset: the kernel's log has none. */
	if (write(fd, text, size) != size)
		ktap_diag("%s: %m", console);
	close(fd);
}

static bool option(const char *argument, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length))
		return false;
	*value = argument + length;
	return true;
}

static const char *parse(int argc, char **argv, bool *list)
{
	const char *pattern = "*", *value;

	for (int i = 1; i < argc; i++) {
		if (option(argv[i], "--kernel=", &value)) {
			if (!strcmp(value, "base"))
				ktap_kernel = KERNEL_BASE;
			else if (!strcmp(value, "patched"))
				ktap_kernel = KERNEL_PATCHED;
			else if (strcmp(value, "plain"))
				return NULL;
		} else if (option(argv[i], "--patience=", &value)) {
			patience = atoi(value);
			if (patience < 1 || patience > PATIENCE_MAX)
				return NULL;
		} else if (!strcmp(argv[i], "--list")) {
			*list = true;
		} else if (!option(argv[i], "--case=", &pattern) &&
			   !option(argv[i], "--progress=", &console)) {
			return NULL;
		}
	}
	return pattern;
}

int ktap_main(int argc, char **argv)
{
	unsigned int number = 0, planned = 0, bad = 0;
	bool list = false;
	const char *pattern = parse(argc, argv, &list);

	if (!pattern) {
		fprintf(stderr,
			"usage: %s [--kernel=base|patched|plain] [--case=NAME] [--list]\n"
			"\t[--patience=TIMES] [--progress=FILE]\n", argv[0]);
		return 2;
	}
	skip_reason = mmap(NULL, SKIP_REASON_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skip_reason == MAP_FAILED)
		return 2;
	for (unsigned int i = 0; i < case_count; i++) {
		if (fnmatch(pattern, cases[i].name, 0))
			continue;
		planned++;
		if (list)
			printf("%s\n", cases[i].name);
	}
	if (list)
		return 0;
	if (!case_count) {
		printf("KTAP version 1\n1..0 # SKIP no case for these sample types\n");
		return EXIT_SKIP;
	}
	printf("KTAP version 1\n1..%u\n", planned);
	for (unsigned int i = 0; i < case_count; i++) {
		if (fnmatch(pattern, cases[i].name, 0))
			continue;
		if (console && number && number % PROGRESS_CASES == 0)
			say_progress(number, planned);
		if (!report(++number, cases[i].name, run_case(&cases[i])))
			bad++;
	}
	return bad ? 1 : 0;
}
