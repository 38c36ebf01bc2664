import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCommand } from '../command-line.ts'
import { scratch } from './cli.ts'

const folder = scratch()
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const agent = resolve(import.meta.dirname, '../../examples/agent/agent.ts')

async function espalier(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand([...words, '--json'])
  expect(code, stderr).toBe(0)
  return stdout.trim().split('\n').at(-1)!
}

describe('an ordinary generateText agent', () => {
  it('is taught by a few dozen demonstrations and trained on its own attempts', async () => {
    const model = join(folder, 'model')
    const out = join(folder, 'run')
    const taught = ['--demonstrations', `${agent}#show`, '--tasks', '48', '--split', 'shown']
    await espalier(
      'teach',
      '--agent',
      `${agent}#run`,
      ...taught,
      '--epochs',
      '60',
      '--seed',
      '3',
      '--out',
      model,
    )
    const last = await espalier(
      ...['train', '--agent', `${agent}#run`, '--policy', `embedded:${model}`, '--out', out],
      ...['--tasks', '192', '--held-out', '48', '--steps', '40', '--tasks-per-step', '32'],
      ...['--group', '8', '--learning-rate', '1e-3', '--seed', '3'],
      ...['--max-turns', '4', '--max-new-tokens', '16'],
    )
    const { successBefore, successAfter } = JSON.parse(last) as Record<
      'successBefore' | 'successAfter',
      number
    >
    expect(successBefore).toBeLessThan(0.5)
    expect(successAfter).toBeGreaterThanOrEqual(0.9)
    expect(readFileSync(join(out, 'metrics.jsonl'), 'utf8').trim().split('\n')).toHaveLength(40)
    // What was kept is what the model saw and said: it gives every token the probability on record.
    const again = join(folder, 'again')
    await espalier(
      ...['roll', '--agent', `${agent}#run`, '--policy', `embedded:${model}`, '--out', again],
      ...['--tasks', '8', '--group', '2', '--max-turns', '4', '--max-new-tokens', '32'],
    )
    await espalier('audit', again, '--policy', `embedded:${model}`)
  }, 600_000)
})
