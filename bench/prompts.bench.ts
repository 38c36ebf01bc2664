// Prompts that are evolved: ours and the gepa package on one scripted policy, with one number of attempts.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { mean } from '../src/base/math/statistics.ts'
import { environment } from '../src/index.ts'
import { improvePrompt } from '../src/learn/improve/improve-prompt.ts'
import { openHouse, rules } from './prompts/house-rules.ts'

const seeds = [1, 2, 3, 4, 5, 6, 7, 8]
/** Attempts that each side may make to find its prompt. */
const attempts = 600
/** Tokens of an answer of the house, by the tokenizer that counts ours. */
const answerTokens = 11

const house = environment({
  name: 'house',
  task: z.object({ kind: z.int() }),
  open({ data }) {
    const content = `Question of kind ${data.kind}.`
    return {
      opening: [
        { role: 'system', content: 'Be helpful.' },
        { role: 'user', content },
      ],
    }
  },
  reward: { right: ({ task, answer }) => Number(answer === `answer ${task.data.kind}`) },
})

/** One seed of one side. */
interface Found {
  readonly seed: number
  readonly best: number
  readonly asked: number
}

/** Runs both sides; without gepa in `ESPALIER_PYTHON` only ours. */
export async function bench(): Promise<object> {
  await using served = await openHouse()
  const kinds = Array.from({ length: 40 }, (_, at) => at % rules.length)
  const ours: Found[] = []
  for (const seed of seeds) ours.push(await runOurs(served.url, kinds, seed))
  const theirs = await runGepa(served.url, kinds)
  const line = (name: string, found: readonly Found[]): string =>
    `${name.padEnd(9)} best prompt ${mean(found.map(each => each.best)).toFixed(3)} of validation tasks ` +
    `(${found.map(each => each.best.toFixed(2)).join(' ')}), ${mean(found.map(each => each.asked)).toFixed(0)} attempts`
  console.log(line('espalier', ours))
  console.log(typeof theirs === 'string' ? theirs : line('gepa', theirs))
  return { ours, theirs }
}

async function runOurs(url: string, kinds: readonly number[], seed: number): Promise<Found> {
  const out = mkdtempSync(join(tmpdir(), 'espalier-prompts-'))
  try {
    const tasks = kinds.map((kind, id) => ({ kind, id }))
    const { validation } = await improvePrompt(house, tasks, {
      policy: `openai:${url}`,
      model: fileURLToPath(new URL('../base-model', import.meta.url)),
      heldOut: [{ kind: 0, id: 'held out' }].map(each => ({ ...each, kind: rules.length })),
      out,
      seed,
      tokens: attempts * answerTokens,
    })
    const tries = readFileSync(join(out, 'tries.jsonl'), 'utf8').match(/"kind":"try"/g) ?? []
    return { seed, best: validation.after, asked: tries.length }
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

async function runGepa(url: string, kinds: readonly number[]): Promise<readonly Found[] | string> {
  const python = process.env.ESPALIER_PYTHON ?? 'python3'
  const script = fileURLToPath(new URL('prompts/gepa_side.py', import.meta.url))
  const half = kinds.length / 2
  const tasks = { validation: kinds.slice(0, half), reflected: kinds.slice(half) }
  const words = [script, url, JSON.stringify(tasks), JSON.stringify(seeds), String(attempts)]
  const child = spawn(python, words, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, problem] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (said === '')
    return `gepa      not run: ${problem.trim().split('\n').at(-1)} (ESPALIER_PYTHON names a Python that has it)`
  return said
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Found)
}
