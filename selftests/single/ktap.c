// SPDX-License-Identifier: GPL-2.0
/* One case of a program on its own: what lib/ktap.c does for many. */
#include "ktap.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CASE_TIMEOUT_S	40
#define EXIT_FAULT	1
#define EXIT_UNTOLD	4
#define HEXDUMP_SIZE	1024
#define EXPECTED	"; expected "

enum kernel ktap_kernel = KERNEL_PATCHED;

static void (*case_run)(const void *arg);
static const void *case_arg;
static unsigned int faults;	/* against the rule that this file is about */
static unsigned int failures;	/* against any */

void ktap_add(void (*run)(const void *arg), const void *arg,
	      const char *format, ...)
{
	char name[256];
	va_list list;

	va_start(list, format);
	vsnprintf(name, sizeof(name), format, list);
	va_end(list);
	if (strcmp(name, CASE))
		return;
	case_run = run;
	case_arg = arg;
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

static void __noreturn end_case(const char *why)
{
	if (faults)
		printf("The fault is there: %u times against %s.\n", faults, CASE_RULE);
	else if (why)
		printf("It cannot be told: %s\n", why);
	else
		printf("The fault is not there.\n");
	fflush(stdout);
	_exit(faults ? EXIT_FAULT : why ? EXIT_UNTOLD : 0);
}

/* Print what fails, and tell a breach of the rule from another. */
static bool fail(const char *format, va_list list)
{
	char text[1024], *begin, *end, *expected;
	bool ours = false, named = false;

	vsnprintf(text, sizeof(text), format, list);
	while ((begin = strchr(text, RULE_BEGIN)) && (end = strchr(begin, RULE_END))) {
		*end = '\0';
		ours |= !named && !strcmp(begin + 1, CASE_RULE);
		named = true;
		memmove(begin, end + 1, strlen(end + 1) + 1);
	}
	faults += ours;
	failures++;
	if (ours ? faults > 1 : failures > 1)
		return false;
	expected = strstr(text, EXPECTED);
	if (expected)
		*expected = '\0';
	ktap_diag("seen: %s", text);
	if (expected)
		ktap_diag("expected: %s", expected + strlen(EXPECTED));
	return true;
}

bool ktap_fail(const char *format, ...)
{
	va_list list;
	bool shown;

	va_start(list, format);
	shown = fail(format, list);
	va_end(list);
	return shown;
}

unsigned int ktap_failures(void)
{
	return failures;
}

void ktap_skip(const char *format, ...)
{
	char why[256];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	end_case(why);
}

void ktap_stop(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fail(format, list);
	va_end(list);
	end_case("it failed before that");
}

void ktap_hexdump(const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t at = 0; at < size && at < HEXDUMP_SIZE; at += 16) {
		printf("#   %04zx:", at);
		for (size_t i = at; i < at + 16 && i < size; i++)
			printf("%s%02x", i % 8 ? " " : "  ", byte[i]);
		printf("\n");
	}
}

static void late(int number)
{
	(void)number;
	ktap_stop(RULE_CASE_ENDS "not done after %d s", CASE_TIMEOUT_S);
}

int ktap_main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		printf("%s: %s\n", CASE, CASE_RULE);
		return 0;
	}
	if (!case_run)
		end_case("this file has no such case");
	signal(SIGALRM, late);
	alarm(CASE_TIMEOUT_S);
	case_run(case_arg);
	end_case(failures && !faults ? "another rule is broken" : NULL);
}
