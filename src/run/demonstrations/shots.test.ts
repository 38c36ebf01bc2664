import { describe, expect, it } from 'vitest'
import { call, openByteRenderer, script } from '../../../test/rolling.ts'
import type { Environment, World } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { roll } from '../run/roll.ts'
import type { RollOptions } from '../run/roll-options.ts'
import type { Conversation } from './conversation.ts'
import { openShots } from './shots.ts'

const model = await openByteRenderer()
const world = calculator()

const shown = (sum: string, answer: string): Conversation => ({
  tools: [],
  messages: [
    { role: 'system', content: 'rules of its own' },
    { role: 'user', content: `What is ${sum}?` },
    {
      role: 'assistant',
      content: '',
      tool_calls: [
        {
          id: 'a',
          type: 'function',
          function: { name: 'calculate', arguments: JSON.stringify({ expression: sum }) },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'a', name: 'calculate', content: answer },
    { role: 'assistant', content: answer },
    { role: 'user', content: 'That was right.' },
  ],
})
const demonstrations = [shown('1+1', '2'), shown('2+3', '5'), shown('4+4', '8')]

async function rollWith(
  options: Partial<RollOptions>,
  within: Environment = world as Environment,
): Promise<readonly Group[]> {
  const tasks = [
    { id: 'a', prompt: 'What is 3+4?', answer: '7' },
    { id: 'b', prompt: 'What is 5+4?', answer: '9' },
  ]
  const said = [call('calculate', { expression: '3+4' }), '7<|im_end|>']
  const policy = script(model, [...said, ...said])
  const groups: Group[] = []
  const all = { policy, model, group: 1, concurrency: 1, ...options }
  for await (const group of roll(within, tasks, all)) groups.push(group)
  return groups
}

describe('examples before a task', () => {
  it('stand between its rules and the task as real turns, marked, and are no part of the conversation', async () => {
    const [first, second] = await rollWith({ shots: 2, demonstrations })
    const { tree, trajectory } = first!.members[0]!
    const { examples, shown } = trajectory.views![0]!
    const start = trajectory.messages[0]!.role === 'system' ? 1 : 0
    expect(examples).toEqual({ start, end: start + 8 })
    expect(shown.slice(start, -1).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
    expect(trajectory.messages.map(({ role }) => role).slice(start)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
    expect(trajectory.calls).toHaveLength(1)
    const prompts = [tree, second!.members[0]!.tree].map(each =>
      model.tokenizer.decode(each.nodes[1]!.segment.ids),
    )
    const shared = prompts[0]!.slice(0, prompts[0]!.indexOf('What is 3+4?'))
    expect(shared).toContain('What is 2+3?')
    expect(shared).not.toContain('rules of its own')
    expect(prompts[1]!.startsWith(shared)).toBe(true)
    expect(first!.members[0]!.reward.total).toBe(1)
  })

  it('never give the solution of the task itself', async () => {
    const own = { ...demonstrations[0]!, task: 'a' as TaskId }
    const others = demonstrations.slice(1).map((each, id) => ({ ...each, task: `${id}` as TaskId }))
    const groups = await rollWith({ shots: 1, demonstrations: [own, ...others] })
    const seen = groups.map(({ members }) => JSON.stringify(members[0]!.trajectory.views))
    expect(seen[0]).toContain('2+3')
    expect(seen[0]).not.toContain('1+1')
    expect(seen[1]).toContain('1+1')
  })

  it('become fewer as success grows, and more again where hardly anything succeeds', async () => {
    const schedule = (await openShots(world, 2, { shots: '2..0', demonstrations }))!
    const counts = [0.5, 0.8, 0.05, 0.9, 1, 1, 0.5].map(success => {
      schedule.learn(success)
      return schedule.now.count
    })
    expect(counts).toEqual([2, 1, 2, 1, 0, 0, 0])
    schedule.restore(1)
    expect(schedule.now.count).toBe(1)
  })

  it.each([
    [{ shots: 2 }, /--shots 2 needs --demonstrations FILE, RUN or FILE#EXPORT/],
    [{ shots: 4, demonstrations }, /there are only 3 demonstrations/],
    [{ shots: '2..0', demonstrations }, /is for train, where success grows/],
    [{ shots: 'two', demonstrations }, /N or N\.\.M, such as 2 or 2\.\.0/],
    [{ demonstrations: 'nowhere.jsonl' }, /no file or run nowhere\.jsonl with demonstrations/],
  ])('are refused where they cannot be shown: %j', async (options, problem) => {
    await expect(rollWith(options as Partial<RollOptions>)).rejects.toThrow(problem)
  })

  it('are not seen by the world', async () => {
    const heard: number[] = []
    const listening: Environment = {
      ...world,
      async open(task, opening) {
        const opened = await world.open(task as never, opening)
        const step: World['step'] = (action, call) => {
          heard.push(call.messages.length)
          return opened.step(action, call)
        }
        return { ...opened, step, [Symbol.asyncDispose]: async () => {} }
      },
    } as Environment
    await rollWith({ shots: 2, demonstrations }, listening)
    expect(new Set(heard).size).toBe(2)
    expect(Math.max(...heard)).toBeLessThan(6)
  })
})
