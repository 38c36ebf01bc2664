import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '@espalier/text'
import { afterAll, describe, expect, it } from 'vitest'
import type { Environment, Transition, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { withFork } from '../../engine/environments/fork.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { describeWalls, findBuilder, withoutWalls } from '../sandboxes/walls.ts'
import { openInterpreter } from './child.ts'
import { interpreterFactory } from './factory.ts'
import { firstFenced } from './fence.ts'
import { interpreter } from './interpreter.ts'
import { findInstalled, type Language } from './language.ts'

const signal = new AbortController().signal
const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })
const limits = { seconds: 30, memory: 256, characters: 500, cpu: 120 }

/** One worker of each language for all tests: what holds it must let go of it for the next. */
const shared = interpreter({ ...limits, languages: ['python', 'javascript'], workers: 1 })
afterAll(() => shared[Symbol.asyncDispose]!())

function open(environment: Environment = shared, seed = 1): Promise<World> {
  const task = { id: 'task' as TaskId, data: environment.readTask({ prompt: 'p', answer: 42 }) }
  return environment.open(task, { seed, signal, lanes })
}

/** One world for all that does not break it. */
const prison = open()
afterAll(async () => await (await prison)[Symbol.asyncDispose]())

let turn = 0
function step(world: World, language: Language, code: string): Promise<Transition> {
  const reply = replyOf('', { tool: language, input: { code } })
  return world.step(reply, { signal, messages: [], turn: turn++ })
}

async function run(world: World, code: string, language: Language = 'python'): Promise<string> {
  const { observed } = await step(world, language, code)
  return textOf(observed?.[0]?.content ?? null)
}

describe('code', () => {
  it('keeps what it defines within an attempt, and nothing of another', async () => {
    await using world = await open()
    expect(await run(world, 'x = 6 * 7\nprint("hi")\nx')).toBe('hi\n42')
    expect(await run(world, 'x += 1')).toBe('No output.')
    await using other = await open()
    expect(await run(other, 'x')).toContain("NameError: name 'x' is not defined")
    expect(await run(world, 'x')).toBe('43')
  })

  it('shows errors with the place in the code and no frame of ours', async () => {
    const world = await prison
    const { observed, calls } = await step(world, 'python', 'def f():\n  return 1 / 0\nf()')
    const text = textOf(observed![0]!.content)
    expect(text).toContain('", line 2, in f')
    expect(text).toContain('ZeroDivisionError: division by zero')
    expect(text).not.toContain('<exec>')
    expect(calls![0]!.problem).toBe('thrown')
  })

  it('runs JavaScript beside Python, each with its own state', async () => {
    const world = await prison
    expect(await run(world, 'const x = [1, { a: "b" }]; print(x.length); x', 'javascript')).toBe(
      '2\n[1, {a: "b"}]',
    )
    expect(await run(world, 'x.at(0)', 'python')).toContain('Error')
    expect(await run(world, 'x.at(0) + 1', 'javascript')).toBe('2')
    expect(await run(world, 'null.a', 'javascript')).toContain('TypeError')
  })

  it('[S1] sees the same clock, hashes and random numbers for the same seed', async () => {
    const code =
      'import random, time, os\nprint(random.random(), time.time(), time.perf_counter(), os.urandom(4), hash("a"))'
    const script = '[Math.random(), Date.now(), String(new Date())]'
    const see = async (seed: number): Promise<string> => {
      await using world = await open(shared, seed)
      return `${await run(world, code)} ${await run(world, script, 'javascript')}`
    }
    const first = await see(7)
    expect(await see(7)).toBe(first)
    expect(await see(8)).not.toBe(first)
    expect(first).toContain('1735689600')
  })

  it('sleeps without waiting', async () => {
    const world = await prison
    expect(
      await run(world, 'import time\nt = time.time()\ntime.sleep(60)\ntime.time() - t >= 60'),
    ).toBe('True')
  })
})

describe('hostile code', () => {
  it.each([
    ['import js', "No module named 'js' here"],
    ['from pyodide.code import run_js', "No module named 'pyodide' here"],
    ['import pyodide_js', "No module named 'pyodide_js' here"],
    ['import ctypes', "No module named 'ctypes' here"],
    ['import socket', "No module named 'socket' here"],
    ['import subprocess', "No module named 'subprocess' here"],
    ['import os\nos.system("id")', 'Error'],
    ['open("/etc/passwd").read()', 'FileNotFoundError'],
    ['import urllib.request\nurllib.request.urlopen("http://localhost:1")', 'Error'],
    ['def f(): return f()\nf()', 'RecursionError'],
    ['l = []\nwhile True: l.append(bytearray(10**7))', 'MemoryError'],
    ['raise SystemExit', 'SystemExit'],
    ['import sys\nsys.exit(3)', 'SystemExit: 3'],
    ['input()', 'Error'],
    ['x = "a" * 10**9', 'MemoryError'],
  ])('gets nowhere: %s', async (code, answer) => {
    expect(await run(await prison, code)).toContain(answer)
  })

  it('finds no variable, file or connection even from inside the process', async () => {
    process.env.INTERPRETER_TEST_SECRET = 'do not tell'
    const world = await prison
    // The way that is open to whoever digs: live objects of the bridge to JavaScript.
    const dig =
      'import gc, os\ncore = next(o for o in gc.get_objects() if type(o).__name__ == "module" and o.__name__ == "_pyodide_core")\n' +
      'function = core.to_js([1]).constructor.constructor'
    expect(await run(world, `${dig}\nprint(function)`)).toContain('native code')
    for (const attempt of ['return process', 'return globalThis', 'return this']) {
      expect(await run(world, `function(${JSON.stringify(attempt)})()`)).toContain(
        'Code generation from strings disallowed',
      )
    }
    expect(await run(world, 'os.environ')).not.toContain('do not tell')
    expect(await run(world, 'os.listdir("/")')).not.toContain('etc')
  })

  it('H1: reaches no port and no socket, through whatever of Node it digs out', async () => {
    await using ports = await openPorts()
    for (const builder of [findBuilder(), withoutWalls()]) {
      const child = await openInterpreter('python', { ...limits, signal, builder })
      // What Node writes to its parent with is handed to a setter that every object has.
      for (const code of digForSockets(ports)) await child.run(code, { signal, seconds: 30 })
      const { kind } = await child.run('1', { signal, seconds: 30 })
      // What Python has built in, and what its bridge offers to those who find it. It may take the
      // process with it, as long as nothing is reached.
      for (const code of digForModules(ports)) {
        const ran = await child.run(code, { signal, seconds: 30 })
        expect(ran.kind === 'ok' ? ran.printed : '').not.toContain('REACHED')
      }
      child.close()
      expect([kind, ports.visits()]).toEqual(['ok', 0])
    }
  })

  it('in JavaScript has the language and nothing else', async () => {
    const world = await prison
    const seen =
      '[typeof process, typeof require, typeof fetch, typeof WebAssembly, typeof setTimeout]'
    expect(await run(world, `${seen}.join()`, 'javascript')).toBe(
      '"undefined,undefined,undefined,undefined,undefined"',
    )
    const climb = 'print.constructor.constructor("return typeof process")()'
    expect(await run(world, climb, 'javascript')).toBe('"undefined"')
    expect(await run(world, 'const f = n => f(n + 1); f(0)', 'javascript')).toMatch(/Error|gone/)
    expect(
      await run(world, 'let a = []; for (;;) a.push(new Uint8Array(1e7))', 'javascript'),
    ).toContain('out of memory')
  })

  it('prints no more than may be shown, and the rest is counted', async () => {
    const world = await prison
    const text = await run(world, 'print("y" * 10**6)')
    expect(text.length).toBeLessThan(600)
    expect(text).toContain('[999501 more characters not shown]')
    expect(await run(world, '"z" * 10**6')).toContain('more characters not shown')
    expect(
      await run(world, 'for (let i = 0; i < 1000; i++) print("y".repeat(1000))', 'javascript'),
    ).toContain('[1000500 more characters not shown]')
  })

  it('that runs without end is stopped; the attempt goes on in a fresh process', async () => {
    await using environment = toDisposable(
      interpreter({ ...limits, seconds: 1, workers: 1, languages: ['javascript'] }),
    )
    await using world = await open(environment.it)
    await run(world, 'var x = 1', 'javascript')
    const { observed, calls } = await step(world, 'javascript', 'for (;;) {}')
    expect(calls![0]!.problem).toBe('timeout')
    expect(textOf(observed![0]!.content)).toContain(
      'ran longer than 1 seconds and was stopped. What was defined before is gone.',
    )
    expect(await run(world, 'typeof x', 'javascript')).toBe('"undefined"')
  })

  it('that breaks its process takes nothing else with it', async () => {
    await using world = await open()
    await run(world, 'x = 1')
    expect(await run(world, 'import os\nos.abort()')).toContain('What was defined before is gone.')
    expect(await run(world, 'x')).toContain('NameError')
  })

  it.runIf(process.env.ESPALIER_SOAK)('fills no more memory than the system lets it', async () => {
    // Files in memory are outside the language's own limit.
    const bomb = 'f = open("/tmp/f", "wb")\nwhile True: f.write(bytes(10**7))'
    expect(await run(await prison, bomb)).toMatch(/Error|gone/)
  })

  it('is left at once when the caller stops', async () => {
    const stop = new AbortController()
    const child = await openInterpreter('javascript', { ...limits, signal })
    const running = child.run('for (;;) {}', { signal: stop.signal, seconds: 60 })
    stop.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    expect(child.isAlive).toBe(false)
  })
})

/** Listens at a port and at a path, and counts who comes. */
async function openPorts() {
  let visits = 0
  const servers = [0, join(mkdtempSync(join(tmpdir(), 'ports-')), 'socket')].map(at =>
    createServer(socket => {
      visits++
      socket.end()
    }).listen(at),
  )
  await Promise.all(servers.map(server => once(server, 'listening')))
  return {
    port: (servers[0]!.address() as AddressInfo).port,
    path: String(servers[1]!.address()),
    visits: () => visits,
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close()
    },
  }
}

const digForSockets = ({ port, path }: { readonly port: number; readonly path: string }) => [
  `import gc
core = next(o for o in gc.get_objects() if type(o).__name__ == "module" and o.__name__ == "_pyodide_core")
O = core.to_js([1]).constructor.prototype.__proto__.constructor
js = lambda fields: core.to_js(fields, dict_converter=O.fromEntries)
seen = []
def setter(this, value):
    seen.append(value)
    O.defineProperty(this, 'handle', js({'value': value, 'writable': True}))
O.defineProperty(O.prototype, 'handle', js({'set': core.create_proxy(setter, capture_this=True)}))`,
  `h = seen[0]
values = [O.getOwnPropertyDescriptor(h, s).value for s in O.getOwnPropertySymbols(h)]
make = next(v for v in values if hasattr(v, '_handle')).constructor
make.new().connect(${port}, '127.0.0.1')
make.new().connect('${path}')`,
]

const digForModules = ({ port }: { readonly port: number }) => [
  `import gc, _imp, importlib.machinery, types
def attempt(reach):
    try: print('REACHED', reach())
    except BaseException: pass
def every():
    seen, left = set(), gc.get_objects()
    while left:
        it = left.pop()
        if id(it) in seen: continue
        seen.add(id(it))
        yield it
        left.extend(gc.get_referents(it))
proxies = [it for it in every() if type(it).__name__ == 'JsProxy']
bridge = next(it for it in proxies if hasattr(it, 'mountNodeFS'))
print('found')
attempt(lambda: bridge.mountNodeFS('/mnt', '/etc'))
bridge.useNodeSockFS()`,
  `name = importlib.machinery.BuiltinImporter.find_spec('_socket')
socket = _imp.create_builtin(name)
_imp.exec_builtin(socket)
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', ${port})))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', ${port})))`,
]

function toDisposable(it: Environment): AsyncDisposable & { readonly it: Environment } {
  return { it, [Symbol.asyncDispose]: async () => await it[Symbol.asyncDispose]?.() }
}

describe('forks', () => {
  it('[R3] go on from the same state and do not touch each other', async () => {
    await using world = await open()
    const go = (on: World, code: string): Promise<string> => run(on, code, 'javascript')
    await go(world, 'var items = [Math.random()]')
    await using fork = await world.fork!({ signal })
    await go(world, 'items.push(1)')
    await go(fork, 'items.push(2)')
    const [one, two] = [await go(world, 'items'), await go(fork, 'items')]
    expect(one.replace(', 1]', '')).toBe(two.replace(', 2]', ''))
    expect(one).not.toBe(two)
    // What is drawn next is the same in both: the state of the generator is part of the state.
    expect(await go(world, 'Math.random()')).toBe(await go(fork, 'Math.random()'))
  })

  it('[R4] by replay do not wait again for code that ran out of time', async () => {
    const options = { ...limits, workers: 2, languages: ['javascript'] } as const
    await using hasty = toDisposable(interpreter({ ...options, seconds: 2 }))
    await using patient = toDisposable(interpreter({ ...options, seconds: 600 }))
    let replaying = hasty.it
    const both: Environment = {
      ...hasty.it,
      open: (task, call) => (call.replay ? replaying : hasty.it).open(task, call),
    }
    await using world = await open(withFork(both))
    await run(world, 'for (;;) {}', 'javascript')
    await run(world, 'var x = 1', 'javascript')
    await using fork = await world.forkAt!(1, { signal })
    expect(await run(fork, 'typeof x', 'javascript')).toBe('"undefined"')
    // Where ten minutes are allowed it says at once that they are over: it did not run the code.
    replaying = patient.it
    await expect(world.forkAt!(1, { signal })).rejects.toThrow('longer than 600 seconds')
  })
})

describe('fenced code', () => {
  const tags = new Set(['', 'py', 'python'])
  it.each([
    ['no fence', undefined],
    ['```python\nprint(1)\n```', 'print(1)'],
    ['```python\nprint(1)', undefined],
    ['```py\na\nb\n``` \nmore', 'a\nb'],
    ['```\nx\n```', 'x'],
    ['```bash\nls\n```\nbetween\n```bash\nls\n```', undefined],
    ['```bash\nls\n```\n````python\n```\n````', '```'],
    ['inline ```python\nx\n```', undefined],
  ])('of %j is %j', (text, code) => {
    expect(firstFenced(text, tags)?.code).toBe(code)
  })

  it('runs turn by turn until a boxed answer; a void turn ends the attempt', async () => {
    await using environment = toDisposable(
      interpreter({ ...limits, style: 'fences', languages: ['javascript'], workers: 1 }),
    )
    const say = async (world: World, text: string): Promise<Transition> =>
      await world.step(replyOf(text), { signal, messages: [], turn: turn++ })
    await using world = await open(environment.it)
    expect(world.opening[0]!.role).toBe('system')
    expect(world.tools).toEqual([])
    const ran = await say(world, 'so:\n```js\nvar x = 41\nprint(x + 1)\n```')
    expect(ran).toMatchObject({
      kind: 'continue',
      observed: [{ role: 'user', content: 'Code execution result: 42' }],
      calls: [{ tool: 'javascript' }],
    })
    await using other = await world.fork!({ signal })
    expect(await say(other, 'I do not know.')).toEqual({ kind: 'end' })
    const final = await say(world, '```js\nfinalAnswer(x + 1)\n```')
    expect(final.kind).toBe('end')
    expect(await world.report!()).toEqual({ printed: '42' })
  })
})

describe('by name', () => {
  it('H1: tells which walls stand, and is refused where they are required and none does', () => {
    const { by, ...walls } = describeWalls(findBuilder().walls)
    expect(shared.isolation).toMatchObject({ by: expect.stringContaining(by), ...walls })
    const { isolation } = interpreter({ builder: withoutWalls() })
    expect(isolation!.by).toMatch(/^no walls of the system, .*permission model/)
    expect(isolation!.missing).toEqual(expect.arrayContaining(['network', 'files', 'processes']))
    expect(() => interpreter({ walls: 'required', builder: withoutWalls() })).toThrow(
      'walls=required',
    )
  })

  it('opens with options and refuses others', async () => {
    const openNamed = (name: string): Promise<Environment> =>
      openEnvironment(name, { interpreter: interpreterFactory })
    await using environment = toDisposable(
      await openNamed('interpreter:javascript,seconds=5,workers=1,warm=0'),
    )
    await using world = await open(environment.it)
    expect(world.tools.map(({ function: { name } }) => name)).toEqual(['javascript'])
    await expect(openNamed('interpreter:ruby')).rejects.toThrow('variant')
    await expect(openNamed('interpreter:python,time=5')).rejects.toThrow('time')
  })

  it('makes tasks with their answers', () => {
    const tasks = shared.makeTasks!({ count: 40, seed: 1 })
    expect(new Set(tasks.map(({ data }) => JSON.stringify(data))).size).toBe(40)
    expect(shared.makeTasks!({ count: 40, seed: 1 })).toEqual(tasks)
  })

  it('names the line that installs what is missing', () => {
    const missing = (): never => {
      throw new Error('Cannot find module')
    }
    expect(() => findInstalled('python', missing)).toThrow('npm i pyodide')
    expect(() => findInstalled('javascript', missing)).toThrow('npm i quickjs-emscripten')
  })
})
