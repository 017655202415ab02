/* The tests of the verbs library that are programs: `program NAME`. */
#include "support.h"

#define TEST(name) {#name, test_##name}

static const struct {
    const char *name;
    test_function *function;
} tests[] = {
    TEST(device),    TEST(absent),     TEST(objects),     TEST(refusals), TEST(nulls),          TEST(states),
    TEST(attributes), TEST(ports),     TEST(write),       TEST(chain),    TEST(unsignaled),     TEST(inline),
    TEST(room),      TEST(receives),   TEST(many),        TEST(overflow), TEST(destroy),        TEST(left),
    TEST(broken),    TEST(channel),    TEST(solicited),   TEST(unacknowledged), TEST(async),    TEST(verbs),
    TEST(fork),      TEST(fork_alone), TEST(waits),       TEST(threads),  TEST(shared),         TEST(life),
    TEST(reader),    TEST(contexts),   TEST(opcodes),     TEST(again),    TEST(closing),        TEST(flood),
};

int main(int count, char **arguments) {
    for (size_t i = 0; count == 2 && i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(tests[i].name, arguments[1]) == 0) {
            tests[i].function();
            return 0;
        }
    }
    fprintf(stderr, "no such test\n");
    return 2;
}
