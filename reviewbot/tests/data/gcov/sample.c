#include "sample.h"

#define UNINSTRUMENTED __attribute__((no_profile_instrument_function, noinline))

#ifdef LEFT_OUT
static int gone(int x)
{
	return x; /* not built */
}
#else
static int here; /* no code */
#endif

UNINSTRUMENTED int quiet(int x)
{
	x += 3; /* not counted */
	return x; /* not counted */
}

__attribute__((noinline)) int never(int x)
{
	return x + 7; /* missed */
}

__attribute__((noinline)) int choose(int x)
{
	const char *text = "/*"; /* no code */

	if (0)
		here = 7; /* merged */
	if (x > 5) { /* hit */
		here = never(x); /* missed */
		return here; /* missed */
	}
	return quiet(x) + *text; /* hit */
}

int main(int argc, char **argv)
{
	(void)argv;
	return !choose(twice(argc)); /* hit */
}
