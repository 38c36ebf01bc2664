import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DOCUMENT = 4096
const DOCUMENTS = 80
const WARM = 16
const packages = new URL('../../node_modules/', import.meta.url).pathname

/**
 * Texts to encode, the same on every machine: code, prose, Chinese, a mixture, invented words. Those to
 * warm up with are others of every kind, so that compiled code meets text that it has not seen.
 */
export function corpora() {
  const random = openRandom(20261115)
  const [code, warmCode] = apart(readDocuments(['zod'], '.ts'))
  const [prose, warmProse] = apart(
    readDocuments(['undici', 'openai', '@anthropic-ai/sdk', 'ai'], '.md'),
  )
  const chinese = Array.from({ length: DOCUMENTS }, () => chineseText(random))
  const mixed = code.map((text, index) =>
    [text.slice(0, 1400), prose[index]!.slice(0, 1400), chinese[index]!.slice(0, 450)].join('\n'),
  )
  const invented = Array.from({ length: DOCUMENTS }, () => inventedText(random))
  const warmInvented = Array.from({ length: WARM }, () => [
    chineseText(random),
    inventedText(random),
  ])
  const warmRare = Array.from({ length: WARM }, () => rareText(random))
  const warm = [...warmCode, ...warmProse, ...warmInvented.flat(), ...warmRare]
  return { warm, corpora: { code, prose, chinese, mixed, invented } }
}

/** The documents to measure and those to warm up with. */
function apart(documents: readonly string[]): readonly [string[], string[]] {
  return [documents.slice(0, DOCUMENTS), documents.slice(DOCUMENTS)]
}

/** Documents of one size out of the files of installed packages, in the order of their names. */
function readDocuments(names: readonly string[], extension: string): string[] {
  const files = names.flatMap(name =>
    readdirSync(join(packages, name), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith(extension) && !file.endsWith('.d.ts'))
      .sort()
      .map(file => join(packages, name, file)),
  )
  const documents: string[] = []
  let text = ''
  for (const file of files) {
    text += readFileSync(file, 'utf8')
    for (; text.length >= DOCUMENT; text = text.slice(DOCUMENT)) {
      documents.push(text.slice(0, DOCUMENT))
      if (documents.length === DOCUMENTS + WARM) return documents
    }
  }
  throw new Error(`${names} have only ${documents.length} documents of ${extension}`)
}

const CHARACTERS =
  '的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长'
const MARKS = '，。；：、？！'

/** Common characters in phrases of 4 to 15, with the marks of real text between. */
function chineseText(random: (limit: number) => number): string {
  let text = ''
  while (text.length < DOCUMENT / 3) {
    for (let left = 4 + random(12); left > 0; left--) text += CHARACTERS[random(CHARACTERS.length)]
    text += MARKS[random(MARKS.length)]
  }
  return text
}

/** Words of random letters. */
function inventedText(random: (limit: number) => number): string {
  let text = ''
  while (text.length < DOCUMENT) {
    for (let left = 6 + random(6); left > 0; left--) text += String.fromCharCode(97 + random(26))
    text += ' '
  }
  return text
}

/** First and last code points of what real text has now and then: accents, other scripts, signs, emoji. */
const RARE = [
  [0xe0, 0x17f],
  [0x3b1, 0x44f],
  [0x5d0, 0x64a],
  [0x2010, 0x2044],
  [0x2500, 0x27bf],
  [0xac00, 0xd7a3],
  [0x1f300, 0x1f64f],
  [0x20000, 0x2a6df],
] as const

/** Runs of rare characters, short and long, between words. */
function rareText(random: (limit: number) => number): string {
  let text = ''
  while (text.length < DOCUMENT / 4) {
    const [first, last] = RARE[random(RARE.length)]!
    const length = random(8) === 0 ? 60 : 1 + random(6)
    for (let left = length; left > 0; left--) {
      text += String.fromCodePoint(first + random(last - first + 1))
    }
    text += [' word ', "'s ", '\n', '12 ', '("', '!\r\n\n', '    '][random(7)]
  }
  return text
}

function openRandom(seed: number): (limit: number) => number {
  let state = seed
  return limit => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state >>> 8) % limit
  }
}
