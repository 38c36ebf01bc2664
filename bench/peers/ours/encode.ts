// Encoding in MB per second: text never seen, by a tokenizer just opened, and again.
import { readFileSync } from 'node:fs'
import { openTokenizer } from '../../../dist/tokens.js'
import { printFigures, readWork } from './side.ts'

const WARM_ROUNDS = 12

const work = await readWork<{
  readonly model: string
  readonly warm: readonly string[]
  readonly corpora: Readonly<Record<string, readonly string[]>>
}>()
const definition = JSON.parse(readFileSync(`${work.model}/models/tokenizer.json`, 'utf8')) as object
const open = () => openTokenizer({ tokenizer: definition })

function measure(encode: (text: string) => unknown, documents: readonly string[]): number {
  const bytes = documents.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  const start = performance.now()
  for (const text of documents) encode(text)
  return bytes / (performance.now() - start) / 1e3
}

// A run encodes for hours: what is measured is compiled code, on texts that it has not seen. Rounds are
// counted, not seconds: most of their time goes into opening.
for (let round = 0; round < WARM_ROUNDS; round++) {
  const { encode } = open()
  for (const text of work.warm) encode(text)
}
const figures: Record<string, number> = {}
for (const [name, documents] of Object.entries(work.corpora)) {
  const { encode } = open()
  figures[`${name}Cold`] = measure(encode, documents)
  figures[`${name}Again`] = measure(encode, documents)
}
printFigures(figures)
