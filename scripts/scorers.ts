// Asks the scorers of evalite, Mastra, autoevals and promptfoo about a few trajectories, by themselves and as our rewards, and
// writes what they say to test/fixtures/scorers.json, which the tests compare with: npx tsx scripts/scorers.ts FOLDER, where FOLDER
// was made with `npm i evalite@0.19.0 vitest@4 promptfoo@0.123.1 @mastra/core@1.71.0 autoevals@0.3.0`.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ScorerLike, scorer } from '../src/engine/rewards/scorer.ts'
import { assertion, type TrajectoryAssertion } from '../src/engine/rewards/trajectory.ts'
import { answers, assertions, trajectories } from '../test/fixtures/scored-trajectories.ts'
import { rewardInput } from '../test/scored.ts'

const folder = process.argv[2]
if (!folder) {
  console.error('usage: npx tsx scripts/scorers.ts FOLDER')
  process.exit(2)
}
const file = fileURLToPath(new URL('../test/fixtures/scorers.json', import.meta.url))
const call = { signal: new AbortController().signal }
let different = 0

/** A module of the packages in the folder. */
async function load<T>(path: string): Promise<T> {
  return (await import(resolve(folder!, 'node_modules', path))) as T
}

/** Counts and prints where our reward differs from the scorer itself. */
function compare(name: string, theirs: unknown, ours: unknown): void {
  if (Object.is(theirs, ours)) return
  different++
  console.error(`${name}: it says ${String(theirs)}, our reward ${String(ours)}`)
}

interface Promptfoo {
  readonly assertions: { runAssertion(options: object): Promise<{ score: number }> }
}

/** The scores of every assertion, by trajectory. */
async function askPromptfoo(): Promise<readonly (readonly number[])[]> {
  const { assertions: own } = await load<Promptfoo>('promptfoo/dist/src/index.js')
  const traces = trajectories.map((calls, index) => ({
    traceId: `trace ${index}`,
    spans: calls.map(({ tool, input }, at) => ({
      spanId: String(at),
      name: 'call',
      startTime: at,
      endTime: at,
      attributes: { 'tool.name': tool, 'tool.arguments': JSON.stringify(input) },
    })),
  }))
  const rows: number[][] = []
  for (const asserted of assertions) {
    const row: number[] = []
    for (const [index, traceData] of traces.entries()) {
      const { traceId } = traceData
      const asked = { assertion: asserted, test: { vars: {} }, providerResponse: { output: 'x' } }
      const { score } = await own.runAssertion({ ...asked, traceId, traceData })
      const ours = assertion(asserted as TrajectoryAssertion)
      const name = `${JSON.stringify(asserted)} of trajectory ${index}`
      compare(name, score, await ours(rewardInput(trajectories[index]!), call))
      row.push(score)
    }
    rows.push(row)
  }
  return rows
}

type Result = number | { readonly score?: number | null }

/** What a scorer says of each answer, by itself and as a reward. */
async function askScorer(
  name: string,
  scored: ScorerLike,
  ask: (asked: (typeof answers)[number]) => Promise<Result> | Result,
): Promise<readonly number[]> {
  const scores: number[] = []
  for (const answer of answers) {
    const result = await ask(answer)
    const score = typeof result === 'number' ? result : result.score!
    compare(
      `${name} of "${answer.output}"`,
      score,
      await scorer(scored)(rewardInput([], answer), call),
    )
    scores.push(score)
  }
  return scores
}

/** A scorer for both evalite and Mastra: how many letters are in the right place. */
function lettersInPlace(output: string, expected: string): number {
  const right = [...expected].filter((letter, index) => output[index] === letter)
  return right.length / expected.length
}

async function askEvalite(): Promise<readonly number[]> {
  type Asked = { output: string; expected: string }
  const { createScorer } = await load<{
    createScorer(options: object): (asked: object) => Promise<Result>
  }>('evalite/dist/index.js')
  const made = createScorer({
    name: 'letters',
    scorer: ({ output, expected }: Asked) => lettersInPlace(output, expected),
  })
  return await askScorer('evalite', made as ScorerLike, made)
}

async function askMastra(): Promise<readonly number[]> {
  type Step = { run: { output: string; groundTruth: string } }
  interface Scorer {
    generateScore(score: (step: Step) => number): Scorer
    run(asked: object): Promise<{ score: number }>
  }
  const { createScorer } = await load<{ createScorer(options: object): Scorer }>(
    '@mastra/core/dist/evals/index.js',
  )
  const made = createScorer({ id: 'letters', name: 'letters', description: 'letters' })
  const scored = made.generateScore(({ run }) => lettersInPlace(run.output, run.groundTruth))
  return await askScorer('Mastra', scored as unknown as ScorerLike, ({ expected, ...asked }) =>
    scored.run({ ...asked, groundTruth: expected }),
  )
}

async function askAutoevals(): Promise<Readonly<Record<string, readonly number[]>>> {
  type Scorer = (asked: object) => Promise<Result>
  const own = await load<Readonly<Record<string, Scorer>>>('autoevals/jsdist/index.mjs')
  const said: Record<string, readonly number[]> = {}
  for (const name of ['ExactMatch', 'Levenshtein']) {
    said[name] = await askScorer(name, own[name] as ScorerLike, own[name]!)
  }
  return said
}

const said = {
  promptfoo: await askPromptfoo(),
  evalite: await askEvalite(),
  mastra: await askMastra(),
  autoevals: await askAutoevals(),
}
writeFileSync(file, `${JSON.stringify(said)}\n`)
console.log(
  `${assertions.length} assertions, ${trajectories.length} trajectories: ${different} differ`,
)
process.exit(different === 0 ? 0 : 1)
