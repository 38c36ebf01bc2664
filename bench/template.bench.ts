import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Template as PeerTemplate } from '@huggingface/jinja'
import { compileTemplate } from '../packages/text/src/jinja/template.ts'
import { type Expectation, missedOf } from './expectation.ts'
import { conversation } from './template/conversation.ts'
import { type Jinja2, openJinja2 } from './template/jinja2.ts'

const folder = fileURLToPath(new URL('../../shared/data/chat-templates', import.meta.url))

/** Rounds per template, of which each side's fastest counts: others may be using the machine. */
const ROUNDS = 12

/** Of jinja2's time, what the median template may take. */
const WANTED = 0.15

const clock = (): Date => new Date(2026, 10, 15, 12)

/** One way to render a template: microseconds of processor time per render, over a round. */
type Side = () => number | Promise<number>

const ROUND_MICROSECONDS = 6000

const repeatsFor = (microseconds: number): number =>
  Math.max(5, Math.min(400, Math.round(ROUND_MICROSECONDS / microseconds)))

function timeRenders(render: () => unknown, repeats: number): number {
  const before = process.cpuUsage()
  for (let index = 0; index < repeats; index++) render()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / repeats
}

/** A side in this process, warmed up until the compiler has settled; none where it cannot render. */
function openSide(render: () => unknown): Side | undefined {
  try {
    for (let warm = 0; warm < 300; warm++) render()
  } catch {
    return undefined
  }
  const repeats = repeatsFor(timeRenders(render, 5))
  return () => timeRenders(render, repeats)
}

/** Jinja2's side, and the text that it makes. */
async function openJinja2Side(
  jinja2: Jinja2,
  name: string,
): Promise<{ readonly side: Side; readonly text: string } | undefined> {
  const warm = await jinja2.measure(name, 20)
  if ('problem' in warm) return undefined
  const repeats = repeatsFor(warm.microseconds)
  const side = async (): Promise<number> => {
    const answer = await jinja2.measure(name, repeats)
    if ('problem' in answer) throw new Error(`jinja2 rendered ${name} once only: ${answer.problem}`)
    return answer.microseconds
  }
  return { side, text: warm.text }
}

/** One template and the ways to render it. */
interface Contest {
  readonly name: string
  readonly sides: Readonly<Record<'microseconds' | 'jinja2' | 'huggingface', Side | undefined>>
  /** Whether ours is jinja2's text. */
  readonly isSame: boolean
}

/** The sides of a template, warmed up; none where ours or jinja2 refuses the conversation. */
async function openContest(
  python: Jinja2,
  name: string,
  source: string,
): Promise<Contest | undefined> {
  const template = compileTemplate(source)
  const render = (): string => template.render(conversation, { clock }).text
  const microseconds = openSide(render)
  const jinja2 = await openJinja2Side(python, name)
  if (!microseconds || !jinja2) return undefined
  const huggingface = openSide(peerRender(source))
  const sides = { microseconds, jinja2: jinja2.side, huggingface }
  return { name, sides, isSame: render() === jinja2.text }
}

/** Lets the sides take turns, so that what else the machine does hits all; the fastest round of each. */
async function inTurns(
  sides: Readonly<Record<string, Side | undefined>>,
): Promise<Readonly<Record<string, number>>> {
  const best: Record<string, number> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, side] of Object.entries(sides)) {
      if (side) best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, await side())
    }
  }
  return best
}

const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

const round = (value: number): number => Math.round(value * 1000) / 1000

/** The median and the worst of what ours takes, relative to another. */
function ratios(
  templates: readonly Readonly<Record<string, number>>[],
  other: string,
): Summary['ratioToJinja2'] {
  const values = templates.flatMap(({ microseconds, ...others }) => {
    const theirs = others[other]
    return theirs === undefined || microseconds === undefined ? [] : [microseconds / theirs]
  })
  return { median: round(median(values)), worst: round(Math.max(...values)) }
}

interface Summary {
  readonly ratioToJinja2: { readonly median: number; readonly worst: number }
  readonly differentText: readonly string[]
}

function expectationsOf({ ratioToJinja2, differentText }: Summary): readonly Expectation[] {
  return [
    { what: "the median template, of jinja2's time", value: ratioToJinja2.median, atMost: WANTED },
    { what: 'templates with another text', value: differentText.length, atMost: 0 },
  ]
}

function peerRender(source: string): () => unknown {
  let template: PeerTemplate | undefined
  return () => {
    template ??= new PeerTemplate(source)
    return template.render(conversation)
  }
}

function printLine(name: string, figures: Readonly<Record<string, number>>): void {
  const { microseconds = Number.NaN, jinja2, huggingface } = figures
  const other = (value: number | undefined): string => (value?.toFixed(0) ?? '-').padStart(7)
  console.log(
    `${name.padEnd(52)} ${microseconds.toFixed(1).padStart(8)} µs   jinja2 ${other(jinja2)}   @huggingface/jinja ${other(huggingface)}`,
  )
}

/** Chat templates: microseconds of processor time per render, in turns with Jinja2 and @huggingface/jinja. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  if (!existsSync(folder)) throw new Error(`The chat templates to measure are not at ${folder}.`)
  const sources: Record<string, string> = {}
  for (const file of readdirSync(folder).filter(name => name.endsWith('.jinja'))) {
    sources[file.replace('.jinja', '')] = readFileSync(`${folder}/${file}`, 'utf8')
  }
  await using python = await openJinja2(sources, conversation)
  // All are warmed up before any is measured: templates share most of the code that renders them.
  const contests: Contest[] = []
  for (const [name, source] of Object.entries(sources)) {
    const contest = await openContest(python, name, source)
    if (contest) contests.push(contest)
  }
  const templates: Record<string, Readonly<Record<string, number>>> = {}
  for (const { name, sides } of contests) {
    const figures = await inTurns(sides)
    templates[name] = figures
    if (!json) printLine(name, figures)
  }
  const differentText = contests.flatMap(({ name, isSame }) => (isSame ? [] : [name]))
  const summary = {
    ratioToJinja2: ratios(Object.values(templates), 'jinja2'),
    ratioToHuggingface: ratios(Object.values(templates), 'huggingface'),
    differentText,
  }
  if (!json) console.log(JSON.stringify(summary))
  return { ...summary, templates, missed: missedOf(expectationsOf(summary)) }
}
