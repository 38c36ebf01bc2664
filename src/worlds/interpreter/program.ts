/**
 * @file The program of an interpreter's child process. It is handed to Node as text, from source as
 * well as from the built package, so nothing here may need a compiler: parameters get their types
 * from default values. It imports nothing of ours.
 */
import childProcess from 'node:child_process'
import crypto from 'node:crypto'
import dgram from 'node:dgram'
import dns from 'node:dns'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import module from 'node:module'
import net from 'node:net'
import tls from 'node:tls'
import vm from 'node:vm'
import workers from 'node:worker_threads'

const start = JSON.parse(process.argv[1] ?? '{}')
process.argv = ['interpreter']
// What a loaded Python looks like in memory: starting from it takes a sixth of the time.
const snapshot = new Uint8Array(start.snapshot ?? 0)
for (let at = 0; at < snapshot.length; ) at += fs.readSync(0, snapshot.subarray(at))
const { stdin, stdout } = process
const exit = process.exit.bind(process)
const say = (message = {}) => void stdout.write(`${JSON.stringify(message)}\n`)

// A clock that advances only when it is read: the same code always sees the same times, and a loop
// that waits for time to pass still ends.
const epoch = Date.UTC(2025, 0, 1)
let milliseconds = 0
const RealDate = Date
globalThis.Date = new Proxy(RealDate, {
  construct: (_, words) =>
    words.length === 0 ? new RealDate(epoch + milliseconds++) : Reflect.construct(RealDate, words),
  apply: () => new RealDate(epoch + milliseconds++).toString(),
})
RealDate.now = () => epoch + milliseconds++
RealDate.prototype.constructor = globalThis.Date
globalThis.performance.now = () => milliseconds++
process.hrtime.bigint = () => BigInt(milliseconds++) * 1_000_000n

// Mulberry32, begun anew for every attempt by its seed.
let state = 0
const draw = () => {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}
const fill = (view = new Uint8Array()) => {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(draw() * 256)
  return view
}
Math.random = draw
Reflect.set(crypto, 'randomFillSync', fill)
Reflect.set(crypto, 'getRandomValues', fill)
Reflect.set(Object.getPrototypeOf(globalThis.crypto), 'getRandomValues', fill)

// A program that wants too much memory gets an error and lives on; what gets around this meets the
// limit of the process.
const { prototype } = Reflect.get(globalThis, 'WebAssembly').Memory
const grow = prototype.grow
prototype.grow = function growWithin(pages = 0) {
  if (this.buffer.byteLength + pages * 65_536 > start.bytes) throw new RangeError('out of memory')
  return grow.call(this, pages)
}

/** What a program printed so far, as much of it as may be shown. */
let printed = ''
let left = 0
const print = (text = '', length = text.length) => {
  const shown = text.slice(0, Math.max(0, start.characters - printed.length))
  printed += shown
  left += length - shown.length
}

const openPython = async () => {
  // The in-memory file system reads constants by a call that the permission model forbids.
  Reflect.set(process, 'binding', (name = '') => {
    if (name === 'constants') return { fs: fs.constants }
    throw new Error('not available here')
  })
  const { loadPyodide } = await import(start.module)
  const python = await loadPyodide({
    indexURL: start.folder,
    jsglobals: Object.freeze(Object.create(null)),
    env: { PYTHONHASHSEED: '0', HOME: '/home', LANG: 'C.UTF-8' },
    stdLibURL: `${start.folder}python_stdlib.zip`,
    ...(start.makesSnapshot && { _makeSnapshot: true }),
    ...(snapshot.length > 0 && { _loadSnapshot: snapshot }),
  })
  if (start.makesSnapshot) {
    await new Promise(resolve => stdout.write(python.makeMemorySnapshot(), resolve))
    exit(0)
  }
  const decoders = [new TextDecoder(), new TextDecoder()]
  const write = (index = 0) => ({
    write(bytes = new Uint8Array()) {
      print(decoders[index]?.decode(bytes, { stream: true }))
      return bytes.length
    },
  })
  python.setStdout(write(0))
  python.setStderr(write(1))
  python.setStdin({ error: true })
  const open = python.runPython(start.prelude)
  const cell = open(start.characters)
  open.destroy()
  return (code = '', seed = -1) => {
    const said = String(cell(code, seed))
    const end = said.indexOf('\n')
    return { kind: said.slice(0, end), text: said.slice(end + 1) }
  }
}

const openJavaScript = async () => {
  const loaded = await import(start.module)
  const runtime = (await (loaded.getQuickJS ?? loaded.default.getQuickJS)()).newRuntime()
  runtime.setMemoryLimit(start.bytes / 2)
  runtime.setMaxStackSize(256 * 1024)
  const context = runtime.newContext()
  const nothing = context.undefined
  const printer = context.newFunction('print', (text = nothing, length = nothing) => {
    print(context.getString(text), context.getNumber(length))
  })
  const open = context.unwrapResult(context.evalCode(start.prelude, 'prelude.js'))
  const limit = context.newNumber(start.characters)
  const cell = context.unwrapResult(context.callFunction(open, nothing, printer, limit))
  const call = (name = '', value = nothing) => {
    const teller = context.getProp(cell, name)
    const said = context.callFunction(teller, nothing, value)
    teller.dispose()
    value.dispose()
    const isText = !said.error && context.typeof(said.value) === 'string'
    const text = isText ? context.getString(said.value) : 'an error that cannot be shown'
    said.dispose()
    return text
  }
  let count = 0
  return (code = '', seed = -1) => {
    if (seed >= 0) {
      call('reseed', context.newNumber(seed))
      return { kind: 'ok', text: '' }
    }
    const result = context.evalCode(code, `cell-${++count}.js`)
    if (result.error) return { kind: 'error', text: call('complain', result.error) }
    const jobs = runtime.executePendingJobs()
    if (jobs.error) return { kind: 'error', text: call('complain', jobs.error) }
    return { kind: 'ok', text: call('describe', result.value) }
  }
}

const run = await (start.language === 'python' ? openPython() : openJavaScript())

// From here on only the language itself and what its interpreter needs is left: no process, no
// modules. The system's walls hold without this; without walls it is the only protection. The
// order matters: first the methods that all sockets share are disabled, then the modules that
// make sockets.
const refuse = () => {
  throw new Error('not available here')
}
const close = (target = {}, names = Object.getOwnPropertyNames(target)) => {
  for (const name of names) {
    const own = Reflect.getOwnPropertyDescriptor(target, name)
    if (own?.configurable === false || name === 'constructor') continue
    if (typeof own?.value !== 'function' && own?.get === undefined) continue
    Reflect.defineProperty(target, name, { value: refuse, writable: false, configurable: false })
  }
}
close(net.Socket.prototype, ['connect'])
for (const { prototype } of [net.Server, dgram.Socket, tls.TLSSocket, tls.Server]) close(prototype)
for (const stream of [stdin, stdout]) {
  // The pipe to the parent is a socket: code that got hold of it could connect elsewhere.
  let handle = Object.getPrototypeOf(Reflect.get(stream, '_handle') ?? {})
  for (; handle && handle !== Object.prototype; handle = Object.getPrototypeOf(handle)) {
    close(handle, ['open', 'bind', 'bind6', 'listen', 'connect', 'connect6', 'fchmod'])
  }
}
for (const opened of [childProcess, dgram, dns, dns.promises, http, https, net, tls, vm, workers]) {
  close(opened)
}
close(module, ['createRequire', '_load', 'register'])
module.syncBuiltinESMExports()
const kept = new Set(
  (
    'globalThis Infinity NaN undefined Object Function Array Number Boolean String Symbol BigInt ' +
    'Math JSON Reflect Proxy Promise Map Set WeakMap WeakSet WeakRef FinalizationRegistry Date RegExp ' +
    'Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError ' +
    'ArrayBuffer SharedArrayBuffer Atomics DataView Iterator Uint8Array Uint8ClampedArray Int8Array ' +
    'Uint16Array Int16Array Uint32Array Int32Array BigInt64Array BigUint64Array Float16Array ' +
    'Float32Array Float64Array Intl WebAssembly parseInt parseFloat isNaN isFinite decodeURI ' +
    'decodeURIComponent encodeURI encodeURIComponent escape unescape eval ' +
    'TextDecoder TextEncoder crypto performance queueMicrotask setTimeout clearTimeout'
  ).split(' '),
)
close(process, ['binding', 'dlopen', 'getBuiltinModule', 'kill', '_linkedBinding'])
close(process, ['_debugProcess', '_startProfilerIdleNotifier', 'chdir', 'loadEnvFile'])
for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (!kept.has(name)) Reflect.deleteProperty(globalThis, name)
}

// Freezes the language's built-ins: code that changed one would be handed Node's internals when Node
// next calls it. Objects may still have own properties of the same names.
const freezeShared = (shared = {}) => {
  for (const key of Reflect.ownKeys(shared)) {
    const own = Reflect.getOwnPropertyDescriptor(shared, key)
    if (!own?.configurable || !('value' in own)) continue
    const { value, enumerable } = own
    const accessor = {
      get: () => value,
      set(next = value) {
        if (Object.is(this, shared)) refuse()
        const made = { value: next, writable: true, enumerable: true, configurable: true }
        Reflect.defineProperty(this, key, made)
      },
    }
    Reflect.defineProperty(shared, key, {
      ...accessor,
      enumerable: enumerable === true,
      configurable: false,
    })
  }
  Object.freeze(shared)
}
const hidden = [
  Object.getPrototypeOf(Uint8Array),
  (function* () {})().constructor,
  Object.getPrototypeOf(function* () {}),
  Object.getPrototypeOf(async () => {}),
  Object.getPrototypeOf(async function* () {}),
  Object.getPrototypeOf(Object.getPrototypeOf([].values())),
]
const intrinsics = [...kept].map(name => Reflect.get(globalThis, name))
for (const each of [...intrinsics, ...hidden]) {
  if ((typeof each !== 'object' && typeof each !== 'function') || each === globalThis) continue
  if (each === null) continue
  const { prototype: shared } = each
  if (shared === Object.prototype || shared === Function.prototype || shared instanceof Error) {
    freezeShared(shared)
  } else if (shared) Object.freeze(shared)
  if (typeof each === 'function' || each === Math || each === JSON || each === Reflect) {
    Object.freeze(each)
  }
}
// A crashing interpreter prints there before it ends.
const mute = () => {}
Reflect.set(globalThis, 'console', { log: mute, info: mute, warn: mute, error: mute, debug: mute })

let rest = ''
stdin.setEncoding('utf8')
stdin.on('end', () => exit(0))
stdin.on('data', chunk => {
  const lines = `${rest}${chunk}`.split('\n')
  rest = lines.pop() ?? ''
  for (const line of lines) answer(JSON.parse(line))
})

function answer(order = { code: '', seed: -1 }) {
  if (order.seed >= 0) state = order.seed | 0
  printed = ''
  left = 0
  const { kind, text } = run(order.code, order.seed)
  const shown = text.slice(0, start.characters)
  say({ kind, printed, text: shown, cut: left + text.length - shown.length })
}

say({ kind: 'ready' })
