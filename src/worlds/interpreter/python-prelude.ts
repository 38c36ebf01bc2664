/**
 * What a Python child runs before anything else; its value is a function that runs a cell. Modules that
 * reach beyond the language are closed here. That alone would not stop a determined program; the
 * process around it does, because it has no files, network or secrets.
 */
export const pythonPrelude = String.raw`
def _open():
    import ast, builtins, linecache, os, random, sys, traceback

    # The source of randomness is looked up when it is first used: now, while it can be.
    os.urandom(1)

    closed = set(
        'js pyodide pyodide_js _pyodide _pyodide_core micropip ctypes _ctypes socket _socket ssl _ssl '
        'select subprocess _posixsubprocess multiprocessing webbrowser'.split()
    )

    class Closed:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition('.')[0] in closed:
                raise ModuleNotFoundError(f'No module named {name!r} here', name=name)

    for finder in sys.meta_path:
        if hasattr(finder, 'jsproxies'):
            finder.jsproxies.clear()
    sys.meta_path[:] = [Closed, *(it for it in sys.meta_path if not hasattr(it, 'jsproxies'))]
    for name in list(sys.modules):
        if name.partition('.')[0] in closed:
            del sys.modules[name]

    def final_answer(value):
        print('\\boxed{' + str(value) + '}')

    world = {'__name__': '__main__', '__builtins__': builtins, 'final_answer': final_answer}
    count = 0

    def explain(error, own):
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is own:
            trace = trace.tb_next
        text = ''.join(traceback.format_exception(type(error), error, trace, limit=20))
        return '\n'.join(line for line in text.split('\n') if 'in find_spec' not in line)

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass

    def run(code, name):
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, 'exec'), world)
        if last is not None:
            return eval(compile(ast.Expression(last.value), name, 'eval'), world)

    def open_cell(limit):
        def cell(code, seed):
            nonlocal count
            if seed >= 0:
                random.seed(seed)
                return 'ok\n'
            count += 1
            name = f'<cell {count}>'
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
            try:
                value = run(code, name)
                return 'ok\n' + ('' if value is None else repr(value)[: limit + 1])
            except BaseException as error:
                try:
                    error.__traceback__ = error.__traceback__.tb_next
                    return 'error\n' + explain(error, run.__code__)[-limit:]
                except BaseException:
                    return 'error\n' + type(error).__name__
            finally:
                flush()

        return cell

    return open_cell


_open()
`
