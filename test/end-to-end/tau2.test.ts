import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCommand } from '../command-line.ts'

const root = 'test/fixtures/tau2-checkout'

function evaluation(environment: string, answers: readonly string[], results: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tau2-'))
  const [script, policy] = [join(folder, 'user.txt'), join(folder, 'answers.jsonl')]
  writeFileSync(script, 'Where is order #2?\n###STOP###\n')
  writeFileSync(policy, answers.map(text => `${JSON.stringify({ text })}\n`).join(''))
  const named = `tau2:${environment},root=${root},user=scripted,script=${script}`
  const where = [
    '--policy',
    `scripted:${policy}`,
    '--model',
    'models/chatml-bytes',
    '--out',
    join(folder, 'run'),
  ]
  return ['eval', '--environment', named, ...where, '--results', join(folder, results)]
}

describe('espalier eval on tau2-bench', () => {
  it('attempts the whole split and writes results as the original keeps them', async () => {
    const words = evaluation('retail', ['It was delivered.'], 'results.json')
    const { code, stdout, stderr } = await runCommand([...words, '--trials', '2'])
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('1 tasks, 2 attempts scored')
    expect(stdout).toContain('databases  0 of 2 right')
    const results = JSON.parse(readFileSync(words.at(-1) as string, 'utf8'))
    expect(results.info).toMatchObject({
      num_trials: 2,
      environment_info: { domain_name: 'retail' },
    })
    expect(results.info.environment_info.policy).toContain('Cancel pending orders')
    expect(results.tasks.map((task: { id: string }) => task.id)).toEqual(['cancel'])
    expect(results.simulations.map(({ trial }: { trial: number }) => trial)).toEqual([0, 1])
    expect(results.simulations[0]).toMatchObject({
      task_id: 'cancel',
      termination_reason: 'user_stop',
      reward_info: { reward: 0, db_check: { db_match: false } },
      messages: [
        { role: 'assistant', turn_idx: 0 },
        { role: 'user' },
        { content: 'It was delivered.' },
        { content: '###STOP###' },
      ],
    })
  })

  it('says what is wrong with a name before anything is rolled', async () => {
    const ask = async (environment: string): Promise<string> => {
      const ran = await runCommand([...evaluation(environment, ['x'], 'r.json')])
      expect(ran.code).toBe(2)
      return ran.stderr
    }
    expect(await ask('retail,split=dev')).toContain('no split "dev". Known: test, train, base.')
    expect(await ask('retail,split=train')).toContain(
      '1 tasks of retail train have assertions that a model must judge',
    )
    expect(await ask('airline')).toContain(
      'has no domain airline: src/tau2/domains/airline is missing',
    )
  })
})
