import nlp from 'compromise'
import { chunkText } from '../src/engine/condensers/chunk.ts'
import { readAnyLanguage } from '../src/engine/condensers/frequency.ts'
import { keywordChunks, keywordCondenser } from '../src/engine/condensers/keyword.ts'
import { measureLoss } from '../src/engine/condensers/probe.ts'
import { standaloneCall } from '../src/engine/condensers/standalone.ts'
import { makePassageTasks } from '../src/engine/environments/built-in/passage-tasks.ts'

/** Rounds of which the fastest counts: others may be using the machine. */
const rounds = 5

const { signal } = new AbortController()

async function fastest(work: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    await work()
    best = Math.min(best, performance.now() - started)
  }
  return best / 1000
}

const speed = (bytes: number, seconds: number): number => bytes / 1e6 / seconds

/** Passages of about 400 characters, all different. */
function makePassages(characters: number): readonly string[] {
  const texts = makePassageTasks({ count: Math.ceil(characters / 3300), seed: 1 })
  return texts.flatMap(({ data }) => data.passages.map(({ text }) => text))
}

/** How many times longer four times the text takes, over four: 1 is linear. Both are beyond the caches. */
async function growth(work: (text: string) => unknown, text: string): Promise<number> {
  const large = text.repeat(4)
  const [once, fourTimes] = [await fastest(() => work(text)), await fastest(() => work(large))]
  return fourTimes / once / 4
}

/** What chunks and keywords cost, against reading the text once and against another library. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const passages = makePassages(300_000)
  // Without blank lines, so that sentences have to be found.
  const text = passages.join(' ')
  const bytes = Buffer.byteLength(text)
  const chunking = text.repeat(8)
  const chunks = await fastest(() => chunkText(chunking))
  const floor = await fastest(() => chunking.split('. ').join('. ').length)
  const condenser = keywordChunks()
  const call = standaloneCall(0, { signal })
  const keywords = await fastest(async () => {
    for (const each of passages) await condenser.condense({ text: each }, call)
  })
  const frequency = await fastest(() => passages.map(readAnyLanguage))
  const some = passages.slice(0, 60)
  const peer = await fastest(() => some.map(each => nlp(each).topics().out('array') as unknown))
  const someBytes = Buffer.byteLength(some.join(''))
  const probes = makePassageTasks({ count: 60, seed: 2 }).flatMap(({ data }) => {
    const found = data.passages.find(({ title }) => title === data.supporting[1])!
    return [{ text: found.text, question: data.question, answers: data.answer }]
  })
  const losses = await Promise.all(
    [1.5, 2, 4].map(async ratio => {
      const loss = await measureLoss(keywordCondenser({ ratio }), probes, { signal })
      return { asked: ratio, ratio: loss.ratio, retention: loss.retention }
    }),
  )
  const figures = {
    chunkMegabytesPerSecond: speed(Buffer.byteLength(chunking), chunks),
    chunkOverSplitting: chunks / floor,
    chunkGrowth: await growth(chunkText, text.repeat(32)),
    keywordMegabytesPerSecond: speed(bytes, keywords),
    keywordOverCompromise: speed(bytes, keywords) / speed(someBytes, peer),
    frequencyMegabytesPerSecond: speed(bytes, frequency),
    frequencyGrowth: await growth(readAnyLanguage, text),
    losses,
  }
  if (!json) print(figures)
  return figures
}

function print(figures: Awaited<ReturnType<typeof bench>> & Record<string, unknown>): void {
  const number = (name: string): string => (figures[name] as number).toFixed(2)
  console.log(
    `chunking    ${number('chunkMegabytesPerSecond')} MB/s, ${number('chunkOverSplitting')} times a plain split and join; four times the text takes ${number('chunkGrowth')} times four as long`,
  )
  console.log(
    `keywords    ${number('keywordMegabytesPerSecond')} MB/s, ${number('keywordOverCompromise')} times compromise's topics`,
  )
  console.log(
    `frequency   ${number('frequencyMegabytesPerSecond')} MB/s; four times the text takes ${number('frequencyGrowth')} times four as long`,
  )
  for (const { asked, ratio, retention } of figures.losses as {
    asked: number
    ratio: number
    retention: number
  }[]) {
    console.log(
      `ratio ${asked}  ${ratio.toFixed(2)} : 1 with marks, ${(100 * retention).toFixed(0)} % of the probes still answered`,
    )
  }
}
