import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { baseModel } from '../../src/learn/model/embedded.ts'
import { type Arm, type Budget, type Measured, measureArm } from './arm.ts'
import { plotCurves } from './plot.ts'
import { cell, difference, interval } from './table.ts'

const group = { group: 2, leaves: 4 }
const long = { length: 'long', tasks: 4, rolloutTokens: 640 } as const
const noise = 0.2

/** Chains and trees under losses with a quantity per sequence. */
function sequenceArms(updates: number): readonly Arm[] {
  const more = updates === 1 ? '' : ` ${updates} updates`
  const tree = { strategy: 'tree', branch: 'fixed:width=2,depth=2', ...group } as const
  const mean = 'the mean of each sequence'
  const ratio = 'one ratio per sequence'
  return [
    { name: `chain grpo loss${more}`, about: mean, loss: 'grpo', updates },
    { name: `chain gspo${more}`, about: ratio, loss: 'gspo', updates },
    {
      name: `tree grpo loss${more}`,
      about: `2 trees of 4 endings, ${mean}`,
      loss: 'grpo',
      updates,
      ...tree,
    },
    {
      name: `tree gspo${more}`,
      about: `2 trees of 4 endings, ${ratio}`,
      loss: 'gspo',
      updates,
      ...tree,
    },
  ]
}

/** The comparisons. Each block has its own question; its first arm is the baseline for the others. */
const blocks: readonly {
  readonly title: string
  readonly question: string
  readonly arms: readonly Arm[]
}[] = [
  {
    title: 'Strategy',
    question: 'Which way of rolling learns most from the same number of sampled tokens?',
    arms: [
      { name: 'chain', about: '8 chains per task' },
      {
        name: 'tree fixed',
        about: '2 trees of 4 endings, width 2 to depth 2',
        strategy: 'tree',
        branch: 'fixed:width=2,depth=2',
        ...group,
      },
      {
        name: 'tree tree-grpo',
        about: '2 trees of 4 endings, 3 random expansions',
        strategy: 'tree',
        branch: 'tree-grpo:expansions=3',
        ...group,
      },
      {
        name: 'step',
        about: '8 attempts, each turn behind the last one',
        strategy: 'step',
        stepHistory: 1,
      },
    ],
  },
  {
    title: 'Losses over sequences',
    question:
      'Do losses with a mean or a ratio over whole sequences learn from trees as from chains? Each path is a sequence of its own. With one update per step all ratios are 1, where gspo is grpo; with four they are not.',
    arms: [
      { name: 'chain', about: '8 chains per task, ppo' },
      ...sequenceArms(1),
      { name: 'chain 4 updates', about: '8 chains per task, ppo', updates: 4 },
      ...sequenceArms(4),
    ],
  },
  {
    title: 'Filters under noise',
    question:
      'A fifth of all attempts is sampled at temperature 3 and taken for samples at 1. Does dropping what shows it help?',
    arms: [
      { name: 'noise', about: 'nothing dropped', noise },
      {
        name: 'noise filtered',
        about: 'overlong, malformed and failing attempts dropped from the loss',
        noise,
        filters: ['overlong', 'malformed-calls', 'tool-errors:calls=1'],
      },
      {
        name: 'noise filtered wholly',
        about: 'the same, dropped from the statistics too',
        noise,
        filters: [
          'overlong:from=loss-and-statistics',
          'malformed-calls:from=loss-and-statistics',
          'tool-errors:calls=1,from=loss-and-statistics',
        ],
      },
    ],
  },
  {
    title: 'Entropy bonus',
    question: 'Does an entropy bonus of 0.01 help?',
    arms: [
      { name: 'chain', about: 'bonus 0.01' },
      { name: 'no entropy bonus', about: 'bonus 0', entropy: 0 },
    ],
  },
  {
    title: 'Temperature',
    question: 'At which temperature should be rolled? Evaluated at the same one.',
    arms: [
      { name: 'chain', about: '1.0' },
      { name: 'temperature 0.7', about: '0.7', temperature: 0.7 },
      { name: 'temperature 1.3', about: '1.3', temperature: 1.3 },
    ],
  },
  {
    title: 'Turns',
    question:
      'One customer with 7 to 9 requests: are longer attempts less stable? All are evaluated with 16 turns.',
    arms: [
      { name: 'at most 16 turns', about: 'long desk', ...long, turns: 16 },
      { name: 'at most 8 turns', about: 'long desk', ...long, turns: 8 },
      { name: 'at most 4 turns', about: 'long desk', ...long, turns: 4 },
    ],
  },
  {
    title: 'Condensing',
    question: 'The same customers in a context of 120 tokens: does leaving out old turns help?',
    arms: [
      { name: 'small context', about: 'cut by the context', ...long, turns: 16, context: 120 },
      {
        name: 'small context condensed',
        about: 'keep-last-turns',
        ...long,
        turns: 16,
        context: 120,
        condense: 'keep-last-turns',
      },
    ],
  },
]

const folder = 'runs/experiments'

/** Runs what is not measured yet, and writes its tables into docs/reference/measured.md, with the plot. */
export async function strategies(options: {
  readonly seeds?: number
  readonly tokens?: number
  readonly model?: string
  readonly only?: readonly string[]
}): Promise<void> {
  const { seeds = 5, tokens = 80_000, model = baseModel, only } = options
  const budget: Budget = { tokens, heldOut: 256, evaluations: 4, model }
  const arms = new Map(blocks.flatMap(block => block.arms).map(arm => [arm.name, arm]))
  const file = `${folder}/strategies-${tokens}.jsonl`
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const known = readKnown(file)
  // Seed by seed, so that an experiment that is cut short has all arms of some seeds.
  for (let seed = 1; seed <= seeds; seed++) {
    for (const arm of arms.values()) {
      if (known.has(`${arm.name}/${seed}`) || (only && !only.includes(arm.name))) continue
      const started = performance.now()
      const measured: Kept = { ...(await measureArm(arm, seed, budget)), commit }
      known.set(`${arm.name}/${seed}`, measured)
      appendFileSync(file, `${JSON.stringify(measured)}\n`)
      const [first, last] = [measured.curve[0]!, measured.curve.at(-1)!]
      const seconds = ((performance.now() - started) / 1000).toFixed(0)
      console.error(
        `${arm.name} seed ${seed}: ${first.reward.toFixed(3)} → ${last.reward.toFixed(3)} in ${measured.steps} steps, ${seconds} s`,
      )
    }
  }
  const kept = [...known.values()].filter(({ seed }) => seed <= seeds)
  console.log(writeTables(kept, budget, seeds))
}

/** What was measured, and with which code. */
interface Kept extends Measured {
  readonly commit: string
}

function readKnown(file: string): Map<string, Kept> {
  mkdirSync(folder, { recursive: true })
  const known = new Map<string, Kept>()
  if (!existsSync(file)) return known
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    const measured = JSON.parse(line) as Kept
    known.set(`${measured.arm}/${measured.seed}`, measured)
  }
  return known
}

/** Writes the tables of what was measured into the page, each in place of the one with its title, and gives them. */
function writeTables(measured: readonly Kept[], budget: Budget, seeds: number): string {
  const of = (name: string): readonly Kept[] =>
    measured.filter(({ arm }) => arm === name).sort((a, b) => a.seed - b.seed)
  const tables = blocks.flatMap(({ title, question, arms }) => {
    const base = of(arms[0]!.name)
    const known = arms.filter(({ name }) => of(name).length > 0)
    if (known.length === 0) return []
    const commits = [...new Set(known.flatMap(({ name }) => of(name)).map(each => each.commit))]
    const made = `${question} Seeds 1 to ${seeds}, ${budget.tokens.toLocaleString('en')} sampled tokens per run, at commit ${commits.join(', ')}.`
    const rows = known.map(arm => rowOf(arm, of(arm.name), base))
    return [[`### ${title}`, made, [header, rule, ...rows].join('\n')].join('\n\n')]
  })
  const [first] = blocks
  if (first!.arms.every(({ name }) => of(name).length > 0)) {
    writeFileSync(
      'docs/images/experiments-strategies.svg',
      plotCurves(first!.arms.map(({ name }) => ({ name, runs: of(name) }))),
    )
  }
  const text = tables.reduce(
    (before, table) => {
      const title = table.split('\n', 1)[0]!
      return before.replace(new RegExp(`^${title}\\n[^]*?(?=^#)`, 'm'), () => `${table}\n\n`)
    },
    readFileSync(page, 'utf8'),
  )
  writeFileSync(page, text)
  return tables.join('\n\n')
}

const page = 'docs/reference/measured.md'

const header =
  '| arm | reward before | after | difference | spread over seeds | unequal groups per 1,000 tokens | gradient norm, mean / highest | ratio, lowest / highest | turns |'
const rule = '|---|---|---|---|---|---|---|---|---|'

function rowOf({ name, about }: Arm, runs: readonly Measured[], base: readonly Measured[]): string {
  const last = runs.map(({ curve }) => curve.at(-1)!.reward)
  const cells = [
    `${name} (${about})`,
    cell(runs.map(({ curve }) => curve[0]!.reward)),
    cell(last),
    name === base[0]?.arm ? '' : difference(runs, base),
    interval(last).deviation.toFixed(3),
    `${cell(
      runs.map(each => each.mixedPerThousand),
      2,
    )} (${(100 * interval(runs.map(each => each.mixedShare)).mean).toFixed(0)} %)`,
    `${cell(runs.map(each => each.gradientNorm.mean))} / ${Math.max(...runs.map(each => each.gradientNorm.highest)).toFixed(2)}`,
    `${Math.min(...runs.map(each => each.ratio.lowest)).toFixed(2)} / ${Math.max(...runs.map(each => each.ratio.highest)).toFixed(2)}`,
    interval(runs.map(each => each.turns)).mean.toFixed(1),
  ]
  return `| ${cells.join(' | ')} |`
}
