# What the library reads of a thread's Python frames is what Python itself says of them. Run by ./run. TAP.
#   usage: frames.py PROBE
import asyncio
import ctypes
import functools
import gc
import os
import subprocess
import sys
import threading
import unittest

PROBE = sys.argv[1]
MOST = 31
TEXT = 128
HELD = ctypes.PyDLL(PROBE)  # calls with the GIL
FREE = ctypes.CDLL(PROBE)  # lets it go for the call
CALLBACK = ctypes.CFUNCTYPE(None)
HELD.probe_microseconds.restype = ctypes.c_double


def end(name):
    """The end of a name, as whole characters of UTF-8 that take no more than TEXT bytes."""
    data = name.encode('utf-8', 'replace')[-TEXT:]
    while data and data[0] & 0xc0 == 0x80:
        data = data[1:]
    return data.decode()


def told(frame, most=MOST):
    """A frame and its callers, as Python has them."""
    lines = []
    while frame and len(lines) < most:
        code = frame.f_code
        lines.append('%s:%d %s' % (end(code.co_filename), frame.f_lineno,
                                   end(getattr(code, 'co_qualname', code.co_name))))
        frame = frame.f_back
    return lines


def read(library, most=MOST, skip=1):
    """The same as the library has them, less the innermost, of which this function is the first."""
    text = ctypes.create_string_buffer(64 << 10)
    count = library.probe_frames(text, len(text), most + skip)
    lines = text.value.decode().split('\n')
    return lines[skip:count]


def same(library=HELD):
    """Called on one line with the frame that it is to be compared with."""
    seen, right = read(library, skip=2), told(sys._getframe(1))
    if not right or seen != right:
        raise AssertionError('seen:\n  %s\nshould be:\n  %s' % ('\n  '.join(seen), '\n  '.join(right)))
    return len(seen)


class Reader:
    def method(self):
        return same()

    @classmethod
    def of_class(cls):
        return cls().method()

    @property
    def value(self):
        return self.of_class()

    def __add__(self, other):
        return self.value


def text_of(lines, name='inner'):
    """Runs a function made of these lines, under its name."""
    space = {'same': same, 'Reader': Reader}
    exec(compile('\n'.join(lines), '<made>', 'exec'), space)
    return space[name]()


class Frames(unittest.TestCase):
    def test_functions_methods_and_properties_with_the_gil_and_without(self):
        for library in HELD, FREE:
            self.assertGreater((lambda: same(library))(), 2)
        self.assertGreater(Reader() + 1, 4)

        class Body:
            DEPTH = same()

        self.assertGreater(Body.DEPTH, 2)

    def test_generators_comprehensions_and_what_c_code_calls(self):
        def generator():
            yield same()
            yield from (same() for _ in range(2))

        self.assertEqual(len([n for n in generator() if n > 2]), 3)
        self.assertTrue(all([same() for _ in range(3)] + list(map(lambda _: same(), range(3)))))
        self.assertTrue(sorted([3, 2], key=lambda _: same()) and {same() for _ in range(2)} and {0: same()})
        self.assertTrue(functools.reduce(lambda a, b: same(), range(3)))

    def test_coroutines(self):
        async def inner():
            return same()

        async def outer():
            async with asyncio.Lock():
                await asyncio.sleep(0)
                return await inner()

        self.assertGreater(asyncio.new_event_loop().run_until_complete(outer()), 3)

    def test_python_called_back_from_c_code(self):
        for library in HELD, FREE:
            depths = []
            callback = CALLBACK(lambda: depths.append(same(library)))
            library.probe_call(callback)
            self.assertGreater(depths[0], 1)

        def deeper(depth):
            return max(map(deeper, [depth - 1])) if depth else same()

        self.assertEqual(deeper(100), MOST)

    def test_lines_of_calls_that_go_over_several_lines_and_back(self):
        def three(*arguments):
            return min(arguments)

        self.assertGreater(three(same(),
                                 three(
                                     same(),
                                     same(),
                                     three(same(), three(
                                         same(), same())), same(),
                                 ), same()), 1)
        for value in range(2):
            try:
                with threading.Lock():
                    if value:
                        raise ValueError(same())
                    same()
            except ValueError:
                same()
            finally:
                same()

    def test_lines_far_apart_and_in_long_functions(self):
        for gap in 1, 127, 128, 129, 300, 70000:
            self.assertGreater(text_of(['def inner():', ' a = same()'] + [''] * gap + [' return min(a, same())']), 1)
            self.assertGreater(text_of(['def inner():', ' return min(1 + ('] + [''] * gap + ['  same()), same())']), 1)
        self.assertGreater(text_of(['def inner():'] + [' a = b = c = (1, [2], {3: 4}); a, b = c, a'] * 3000
                                   + [' return same()']), 1)
        self.assertGreater(text_of(['def inner():', ' a = [' + '[], ' * 400 + ']; return same()']), 1)
        self.assertGreater(text_of([''] * 200000 + ['def inner(): return same()']), 1)

    def test_lines_where_the_code_is_traced(self):
        def hook(*arguments):
            return hook

        before = sys.gettrace(), sys.getprofile()
        try:
            sys.settrace(hook)
            sys.setprofile(hook)
            self.assertGreater(Reader().value, 3)
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])
        if hasattr(sys, 'monitoring'):
            events = sys.monitoring.events
            sys.monitoring.use_tool_id(4, 'test')
            sys.monitoring.register_callback(4, events.LINE, lambda *_: None)
            sys.monitoring.set_events(4, events.LINE | events.INSTRUCTION | events.CALL)
            self.assertGreater(Reader().value, 3)
            sys.monitoring.set_events(4, 0)
            sys.monitoring.free_tool_id(4)

    def test_names_that_are_odd_long_or_not_ascii(self):
        wide = '\U00010330\u6587\u03bb\u00e9'
        for file in ('', ' ', '<string>', 'a\tb', 'x' * 127, 'x' * 128, 'x' * 129, 'x' * 100000, '\u00e9', '\u00ff.py',
                     'e' * 127 + '\u00e9', '\u00e9' + 'e' * 127, '\u6587.py', '/tmp/' + '\u6587' * 200, wide * 50,
                     'bytes\udc80\udcff.py'):
            for function in 'f', '\u00e9l\u00e8ve', '\u6587\u5b57', '\U00010330', 'g' * 300, '\u6587' * 100:
                space = {'same': same}
                exec(compile('def %s(): return same()\ndepth = %s()' % (function, function), file, 'exec'), space)
                self.assertGreater(space['depth'], 2)

    def test_a_name_of_a_class_made_from_str_is_not_shown(self):
        class Name(str):
            pass

        code = (lambda: read(HELD)).__code__.replace(co_filename=Name('somewhere'))
        self.assertTrue(eval(code)[0].startswith('?:'))
        self.assertGreater(same(), 2)

    def test_deep_recursion_gives_as_many_frames_as_there_is_room_for(self):
        def deeper(depth):
            return deeper(depth - 1) if depth else same()

        self.assertEqual(deeper(500), MOST)
        self.assertEqual(FREE.probe_frames(ctypes.create_string_buffer(1000), 1000, 0), 0)
        self.assertEqual(FREE.probe_frames(ctypes.create_string_buffer(1000), 1000, 2), 2)

    def test_busy_threads_while_garbage_is_collected(self):
        stop, wrong, counts = threading.Event(), [], [0] * 4

        def work(number, library):
            try:
                while not stop.is_set():
                    Reader().method()
                    text_of(['class Garbage: pass', 'def inner():', ' a = Garbage(); a.a = a', ' return same()'])
                    for _ in range(20):
                        same(library)
                    counts[number] += 1
            except AssertionError as failed:
                wrong.append(failed)

        threads = [threading.Thread(target=work, args=(i, (HELD, FREE)[i % 2])) for i in range(4)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        for thread in threads:
            thread.start()
        for _ in range(30):
            gc.collect()
        stop.wait(1)
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        self.assertEqual(wrong, [])
        self.assertTrue(all(counts))

    def test_a_thread_without_python_has_no_frames(self):
        self.assertEqual(FREE.probe_frames_elsewhere(), 0)

    def test_a_forked_child_has_the_frames_of_the_thread_that_forked(self):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if same() > 2 and same(FREE) > 2 else 1)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_another_interpreter_in_the_process_does_no_harm(self):
        try:
            import _testcapi
        except ImportError:
            print('# cannot be seen here: this Python has no _testcapi')
            return
        _testcapi.run_in_subinterp('import ctypes; text = ctypes.create_string_buffer(9999)\n'
                                   'for make in ctypes.PyDLL, ctypes.CDLL:\n'
                                   ' make(%r).probe_frames(text, 9999, 31)' % PROBE)
        self.assertGreater(same(), 2)

    def child(self, text):
        done = subprocess.run([sys.executable, '-c', 'import ctypes, os, sys\nprobe = ctypes.%s(sys.argv[1])\n'
                               'text = ctypes.create_string_buffer(9999)\n%s' % text, PROBE],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.decode().split()

    def test_at_exit_there_are_frames_and_once_the_interpreter_ends_none(self):
        for make in 'PyDLL', 'CDLL':
            self.assertEqual(self.child((make, 'import atexit\natexit.register('
                                               'lambda: print("exit", probe.probe_frames(text, 9999, 31), flush=True))\n'
                                               'class Last:\n'
                                               ' def __del__(self, say=os.write, probe=probe, text=text):\n'
                                               '  say(1, b"del %d\\n" % probe.probe_frames(text, 9999, 31))\n'
                                               'last = Last()\n')),
                             ['exit', '1', 'del', '0'])

    def test_a_thread_that_still_looks_while_the_interpreter_ends_does_no_harm(self):
        for _ in range(10):
            self.child(('CDLL', 'import threading, time\n'
                                'for _ in range(3):\n'
                                ' threading.Thread(target=lambda: probe.probe_microseconds(1 << 30), daemon=True).start()\n'
                                'time.sleep(0.05)'))

    def test_it_takes_microseconds(self):
        def seven(depth=3):
            return HELD.probe_microseconds(20000) if depth == 0 else seven(depth - 1)

        each = min(HELD.probe_microseconds(20000) for _ in range(3))
        print('# %d frames: %.2f us' % (len(told(sys._getframe(), 99)), each))
        self.assertLess(each, 100)


class Tap(unittest.TestResult):
    def say(self, test, ok):
        name = test.id().rsplit('.', 1)[1][len('test_'):].replace('_', ' ')
        print('%sok %d - %s' % ('' if ok else 'not ', self.testsRun, name), flush=True)

    def addSuccess(self, test):
        self.say(test, True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say(test, False)
        for line in self.failures[-1][1].splitlines():
            print('# ' + line.encode('ascii', 'backslashreplace').decode())

    def addError(self, test, error):
        self.addFailure(test, error)


if __name__ == '__main__':
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Frames)
    print('1..%d' % suite.countTestCases())
    print('# Python ' + sys.version.split()[0] + ' ' + sys.executable)
    sys.exit(not suite.run(Tap()).wasSuccessful())
