int choose(int x); /* no code */

static inline int twice(int x)
{
	return x + x; /* hit */
}
