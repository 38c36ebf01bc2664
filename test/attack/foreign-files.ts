import { spawnSync } from 'node:child_process'
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Random } from '../../src/base/math/random.ts'
import { readSafetensors, writeSafetensors } from '../../src/learn/model/safetensors.ts'
import { readConfig } from '../../src/run/settings/config.ts'
import { newManifest } from '../../src/run/store/manifest.ts'
import {
  createRun,
  readManifest,
  runPaths,
  standingOf,
  writeManifest,
} from '../../src/run/store/run-folder.ts'
import { openRunReader, openRunWriter } from '../../src/run/store/store.ts'
import { type Attack, damagedBytes, hold, oneOf, piecesOf } from './attack.ts'

const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-attack-'))

const places = [
  ...['run.json', 'journal.frames', 'journal.index', 'unfinished.frames', 'writer.lock'],
  ...['events.jsonl', 'report.json', 'metrics.jsonl', 'names.jsonl', 'submissions.jsonl'],
  ...['run.json.next', 'unfinished.frames.next', 'report.json.draft', 'checkpoints', 'other'],
]

/** What lies at a place of a run: a link out of it or to nothing, a pipe, a device, a folder. */
const odd: Readonly<Record<string, (path: string, outside: string) => void>> = {
  link: (path, outside) => symlinkSync(join(outside, 'profile'), path),
  'link to nothing': (path, outside) => symlinkSync(join(outside, 'new'), path),
  'link to a folder': (path, outside) => symlinkSync(outside, path),
  pipe: path => void spawnSync('mkfifo', [path]),
  device: path => symlinkSync('/dev/zero', path),
  folder: path => mkdirSync(path),
}

/** Opens a run as every command does, to read and to write. */
async function visit(folder: string): Promise<void> {
  const manifest = await readManifest(folder)
  await standingOf(folder, manifest)
  await using reader = await openRunReader(folder)
  for await (const _ of reader.groups());
  await using _writer = await openRunWriter(folder)
  await writeManifest(folder, { ...manifest, reason: '$(id)' })
}

/** Run folders whose files are something else: refused, and nothing outside of them is touched, read or waited for. */
export const runFolders: Attack = {
  name: 'run folders',
  promise: 'H7',
  share: 1,
  async open() {
    const whole = join(scratch(), 'run')
    await (await createRun(whole, newManifest('roll', {})))[Symbol.asyncDispose]()
    return async draw => {
      const top = scratch()
      const [folder, outside] = [join(top, 'run'), join(top, 'home')]
      cpSync(whole, folder, { recursive: true })
      mkdirSync(outside)
      writeFileSync(join(outside, 'profile'), 'theirs')
      const count = 1 + Math.floor(draw() * 3)
      const planted = Array.from({ length: count }, () => {
        const [name, kind] = [oneOf(places, draw), oneOf(Object.keys(odd), draw)]
        const path = join(folder, name)
        rmSync(path, { recursive: true, force: true })
        odd[kind]!(path, outside)
        return `${name} a ${kind}`
      })
      const told = await visit(folder).then(
        () => 'done',
        (error: Error) => error.message,
      )
      const what = `${planted.join(', ')}: ${told}`
      hold(readFileSync(join(outside, 'profile'), 'utf8') === 'theirs', `${what} wrote outside`)
      hold(readdirSync(outside).length === 1, `${what} made a file outside`)
      hold(told.includes(folder) || told === 'done', `${what} names no place`)
      hold(told !== 'done' || !isOdd(runPaths(folder).journal), `${what} was read`)
      rmSync(top, { recursive: true, force: true })
    }
  },
}

function isOdd(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === false
}

/** Files of weights with bytes damaged, and headers that lie: tensors of the sizes they say, or words. */
export const weights: Attack = {
  name: 'weights',
  promise: 'H6',
  share: 10,
  async open() {
    const tensors = [
      { name: 'a', shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
      { name: 'b', shape: [4], data: Float32Array.of(1, 2, 3, 4) },
    ]
    const whole = Buffer.from(writeSafetensors(tensors))
    const rest = whole.subarray(8 + Number(whole.readBigUInt64LE(0)))
    return draw => {
      const bytes = draw() < 0.5 ? damagedBytes(whole, draw) : lyingHeader(rest, draw)
      try {
        for (const { name, shape, data } of readSafetensors(bytes, 'x.safetensors')) {
          const size = shape.reduce((product, side) => product * side, 1)
          hold(size === data.length, `${name} of [${shape}] has ${data.length} numbers`)
        }
      } catch (cause) {
        const { message } = cause as Error
        hold(message.startsWith('x.safetensors'), `${message} names no file`)
      }
    }
  },
}

const numbers = [0, 1, -1, 4, 24, 40, 2 ** 31, 2 ** 53, 1e308, 0.5, null, '8', [], {}]

function lyingHeader(rest: Buffer, draw: Random): Buffer {
  const some = (): unknown[] =>
    Array.from({ length: Math.floor(draw() * 4) }, () => oneOf(numbers, draw))
  const name = oneOf(['a', '__proto__', 'constructor', '__metadata__', ''], draw)
  const entry = { dtype: oneOf(['F32', 'BF16', 7], draw), shape: some(), data_offsets: some() }
  const head = Buffer.from(`{${JSON.stringify(name)}:${JSON.stringify(entry)}}`)
  const length = Buffer.alloc(8)
  const said = draw() < 0.8 ? BigInt(head.length) : 2n ** BigInt(Math.floor(draw() * 64))
  length.writeBigUInt64LE(BigInt.asUintN(64, said))
  return Buffer.concat([length, head, rest])
}

const pieces = [
  ...['[', ']', '[[', ']]', '{', '}', '=', '.', ',', '\n', '"', '"""', "'", "'''", '#', ' ', '\\'],
  ...[
    'group',
    'seed',
    'profiles',
    '__proto__',
    'constructor',
    'toString',
    'a',
    '\\u0000',
    '\\UFFFFFFFF',
  ],
  ...[
    '1',
    '-0',
    '1e999',
    '0x',
    'inf',
    'nan',
    '1979-05-27T07:32:00Z',
    'true',
    '\u0000',
    '\uFEFF',
    '9'.repeat(400),
  ],
  ...['['.repeat(2000), '{a='.repeat(500), 'a.'.repeat(1000), '[a]\n'.repeat(20)],
]

/** Config files that nobody wrote on purpose: an object of settings, or words with the file, soon and without side effects. */
export const configs: Attack = {
  name: 'config files',
  promise: 'H6',
  share: 4,
  async open() {
    const folder = scratch()
    return async draw => {
      const path = join(folder, draw() < 0.8 ? 'c.toml' : 'c.json')
      writeFileSync(path, piecesOf(pieces, 24, draw))
      try {
        hold(typeof (await readConfig(path)) === 'object', 'no object')
      } catch (cause) {
        const { message } = cause as Error
        hold(message.includes(path), `${message.slice(0, 200)} names no file`)
      }
      hold(Object.keys(Object.prototype).length === 0, 'the prototype of all objects was changed')
    }
  },
}
