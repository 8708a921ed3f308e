# 0 "/src/lib/sample.c"
# 0 "<built-in>"
# 0 "<command-line>"
# 1 "/usr/include/stdc-predef.h" 1 3 4
# 0 "<command-line>" 2
# 1 "/src/lib/sample.c"
# 1 "/src/lib/sample.h" 1
int choose(int x);

static inline int twice(int x)
{
 return x + x;
}
# 2 "/src/lib/sample.c" 2
# 11 "/src/lib/sample.c"
static int here;


__attribute__((no_profile_instrument_function, noinline)) int quiet(int x)
{
 x += 3;
 return x;
}

__attribute__((noinline)) int never(int x)
{
 return x + 7;
}

__attribute__((noinline)) int choose(int x)
{
 const char *text = "/*";

 if (0)
  here = 7;
 if (x > 5) {
  here = never(x);
  return here;
 }
 return quiet(x) + *text;
}

int main(int argc, char **argv)
{
 (void)argv;
 return !choose(twice(argc));
}
