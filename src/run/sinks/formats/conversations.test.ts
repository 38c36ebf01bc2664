import { describe, expect, it } from 'vitest'
import { chainGroup, toExport, treeGroup } from '../../../../test/export-runs.ts'
import { writeTo } from '../../../../test/memory-output.ts'
import type { Group } from '../../../base/core/group.ts'
import { type Fields, openFields } from '../fields.ts'
import type { Format } from '../format.ts'
import { atif } from './atif.ts'
import { openaiDpo, trlDpo } from './preference.ts'
import { openaiSft, trlSft } from './supervised.ts'
import { tauBench } from './tau-bench.ts'
import { tau2Bench } from './tau2-bench.ts'
import { tinker } from './tinker.ts'

async function objects(format: Format, groups: readonly Group[]): Promise<readonly Fields[]> {
  const { lines } = await writeTo(format, groups.map(toExport))
  return lines.map((line, index) => openFields(line, `line ${index + 1}`))
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool']

/** OpenAI's rules for messages: known roles, calls with text for arguments, answers to known calls. */
function checkMessages(messages: readonly Fields[]): void {
  const calls = new Set<string>()
  for (const message of messages) {
    expect(roles).toContain(message.text('role'))
    expect(message.has('reasoning_content')).toBe(false)
    for (const call of message.has('tool_calls') ? message.each('tool_calls') : []) {
      calls.add(call.text('id'))
      expect(call.text('type')).toBe('function')
      JSON.parse(call.inner('function').text('arguments'))
    }
    if (message.text('role') === 'tool') expect(calls).toContain(message.text('tool_call_id'))
    if (message.has('weight')) {
      expect(message.text('role')).toBe('assistant')
      expect([0, 1]).toContain(message.integer('weight'))
    }
  }
}

describe('conversations for supervised training', () => {
  it("are what OpenAI's fine-tuning takes", async () => {
    for (const example of await objects(openaiSft, [chainGroup([1, 0]), treeGroup(3)])) {
      const messages = example.each('messages')
      checkMessages(messages)
      expect(messages.at(-1)!.text('role')).toBe('assistant')
      if (example.has('tools')) {
        expect(example.value.parallel_tool_calls).toBe(false)
        for (const tool of example.each('tools')) tool.inner('function').text('name')
      }
    }
  })

  it('weigh every reply of a tree in one conversation only', async () => {
    const group = treeGroup(5)
    const examples = await objects(openaiSft, [group])
    const replies = examples
      .flatMap(example => example.each('messages'))
      .filter(message => message.has('weight'))
    const trained = replies.filter(message => message.integer('weight') === 1).length
    const turns = group.members
      .filter(({ dropped }) => dropped === null)
      .flatMap(({ tree, trajectory }) =>
        trajectory.turns.map(({ from }) => `${tree.member}/${from}`),
      )
    expect(trained).toBe(new Set(turns).size)
    expect(replies.length).toBeGreaterThan(trained)
  })

  it.each([openaiSft, trlSft])(
    '[D1] $name has no line for a trajectory whose replies are not known as messages, and counts it',
    async format => {
      const { members, ...rest } = chainGroup([1, 0])
      const silent = members.map(member => {
        const messages = member.trajectory.messages.slice(0, 1)
        return { ...member, trajectory: { ...member.trajectory, messages } }
      })
      const written = await writeTo(format, [toExport({ ...rest, members: silent })])
      expect(written.lines).toEqual([])
      expect(written.lost.find(({ what }) => what.includes('said nothing'))?.count).toBe(2)
    },
  )

  it("have objects for arguments in TRL's format, and keep reasoning", async () => {
    const [example] = await objects(trlSft, [chainGroup([1])])
    const reply = example!.each('messages')[1]!
    expect(reply.text('reasoning_content')).toBe('Let me look.')
    expect(reply.each('tool_calls')[0]!.inner('function').inner('arguments').value).toEqual({})
  })
})

describe('pairs for preference training', () => {
  it('put the best beside the worst, and share what both began with', async () => {
    const [first, ...rest] = await objects(trlDpo, [chainGroup([0, 1, 0.5, 0.5])])
    expect(rest).toHaveLength(0)
    expect(first!.each('prompt').map(message => message.text('role'))).toEqual([
      'user',
      'assistant',
      'tool',
    ])
    expect(first!.each('chosen')[0]!.text('content')).toBe('There are 1.')
    expect(first!.each('rejected')[0]!.text('content')).toBe('There are 0.')
  })

  it('are one reply each in OpenAI’s format', async () => {
    for (const pair of await objects(openaiDpo, [chainGroup([0, 1]), treeGroup(2), treeGroup(6)])) {
      checkMessages(pair.inner('input').each('messages'))
      for (const name of ['preferred_output', 'non_preferred_output']) {
        const output = pair.each(name)
        expect(output.map(message => message.text('role'))).toEqual(['assistant'])
        checkMessages(output)
      }
      expect(pair.value.preferred_output).not.toEqual(pair.value.non_preferred_output)
    }
  })

  it('need rewards that differ', async () => {
    const { rows, lost } = await writeTo(trlDpo, [toExport(chainGroup([1, 1]))])
    expect(rows).toBe(0)
    expect(lost).toEqual([{ what: 'trajectories without a partner of another reward', count: 2 }])
  })
})

type Results = readonly { readonly task_id: unknown; readonly trial: number }[]

describe('documents for viewers and benchmarks', () => {
  it('ATIF hangs results on the step that called, and marks turns trained elsewhere', async () => {
    const [document] = await objects(atif, [chainGroup([1])])
    const steps = document!.each('steps')
    expect(steps.map(step => [step.integer('step_id'), step.text('source')])).toEqual([
      [1, 'user'],
      [2, 'agent'],
      [3, 'agent'],
    ])
    const result = steps[1]!.inner('observation').each('results')[0]!
    expect([result.text('source_call_id'), result.text('content')]).toEqual(['c1', '4'])
    expect([...steps[2]!.inner('metrics').ids('completion_token_ids')]).toEqual([110, 111, 112])
    const tree = await objects(atif, [treeGroup(5)])
    const copied = tree.flatMap(each => each.each('steps')).filter(s => s.has('is_copied_context'))
    expect(copied.length).toBeGreaterThan(0)
  })

  it('tau-bench gets one array, with empty conversations for what failed', async () => {
    const { text } = await writeTo(tauBench, [toExport(chainGroup([1, 0], { failed: 1 }))])
    const results = JSON.parse(text) as readonly Record<string, unknown>[]
    expect(results.map(({ task_id, reward, trial }) => [task_id, reward, trial])).toEqual([
      [0, 1, 0],
      [0, 0, 1],
      [0, 0, 2],
    ])
    expect(results[2]!.traj).toEqual([])
    expect(results[2]!.info).toEqual({ error: 'failed in tool: broke', traceback: '' })
    expect(JSON.parse((await writeTo(tauBench, [])).text)).toEqual([])
  })

  it.each([tauBench, tau2Bench])(
    '$name gets the first trials of all tasks, then the second',
    async format => {
      const groups = ['1', '0'].map(id => toExport(chainGroup([1, 0], { id, failed: 1 })))
      const { text } = await writeTo(format, groups)
      const parsed = JSON.parse(text) as Results | { readonly simulations: Results }
      const results = 'simulations' in parsed ? parsed.simulations : parsed
      const places = results.map(({ task_id, trial }) => [String(task_id).slice(0, 1), trial])
      expect(places).toEqual([0, 1, 2].flatMap(trial => ['1', '0'].map(task => [task, trial])))
    },
  )

  it('Tinker reads tokens one before their targets', async () => {
    const [datum] = await objects(tinker, [chainGroup([1, 0])])
    const input = datum!.inner('model_input').each('chunks')[0]!.ids('tokens')
    const inputs = datum!.inner('loss_fn_inputs')
    const targets = inputs.inner('target_tokens').ids('data')
    expect([...input.subarray(1)]).toEqual([...targets.subarray(0, -1)])
    expect([...targets.subarray(3, 6)]).toEqual([100, 101, 102])
    const logprobs = inputs.inner('logprobs').logprobs('data')
    expect([...logprobs.subarray(2, 7)]).toEqual([0, -0.5, -0.25, -0.125, 0])
    expect(inputs.inner('advantages').list('shape')).toEqual([targets.length])
  })
})
