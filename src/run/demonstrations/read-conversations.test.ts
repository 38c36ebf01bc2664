import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Task } from '../../base/core/environment.ts'
import { environment } from '../../engine/environments/environment.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import { readConversations } from './read-conversations.ts'

const desk = environment({
  name: 'desk',
  task: z.object({ tool: z.enum(['look', 'ask']) }),
  open({ data }) {
    const offered = tool({ inputSchema: z.object({ at: z.string() }), execute: () => 'seen' })
    return { opening: [{ role: 'user', content: 'go' }], tools: { [data.tool]: offered } }
  },
})
const tasks: Task[] = ['look', 'ask'].map(name => ({
  id: `t-${name}` as never,
  data: { tool: name },
}))

const user = { role: 'user', content: 'go' }
const calls = (name: string, text = '{"at":"x"}') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: '1', type: 'function', function: { name, arguments: text } }],
})
const seen = { role: 'tool', tool_call_id: '1', content: 'seen' }
const done = { role: 'assistant', content: 'done' }

function read(lines: readonly unknown[], offering = { environment: desk as never, tasks }) {
  const file = join(mkdtempSync(join(tmpdir(), 'espalier-shown-')), 'shown.jsonl')
  writeFileSync(file, lines.map(line => JSON.stringify(line)).join('\n'))
  return readConversations(file, offering)
}

describe('demonstrations from a file', () => {
  it("take OpenAI's messages with tools of their own, those of their task, or the first task's", async () => {
    const own = [{ type: 'function', function: { name: 'mine', parameters: {} } }]
    const found = await read([
      { messages: [user, calls('mine'), seen, done], tools: own },
      { task: 't-ask', messages: [user, calls('ask'), seen, done] },
      { messages: [user, calls('look'), seen, done] },
    ])
    const names = found.map(({ tools }) => tools.map(each => each.function.name))
    expect(names).toEqual([['mine'], ['ask'], ['look']])
  })

  it("take the AI SDK's messages", async () => {
    const [found] = await read([
      {
        messages: [
          user,
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'I look.' },
              { type: 'tool-call', toolCallId: '7', toolName: 'look', input: { at: 'x' } },
            ],
          },
          {
            role: 'tool',
            content: [
              {
                type: 'tool-result',
                toolCallId: '7',
                toolName: 'look',
                output: { type: 'text', value: 'seen' },
              },
            ],
          },
          { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
        ],
      },
    ])
    expect(found!.messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [
          { id: '7', type: 'function', function: { name: 'look', arguments: '{"at":"x"}' } },
        ],
      },
      { role: 'tool', tool_call_id: '7', content: 'seen' },
      { role: 'assistant', content: 'done' },
    ])
  })

  it('are refused with line and reason where nothing could be learned from them', async () => {
    const refused = async (line: unknown) =>
      await read([{ messages: [user, done] }, line]).then(
        () => 'taken',
        (error: Error) => error.message.replace(/^.*shown/, 'shown'),
      )
    expect(await refused({ messages: [user] })).toBe(
      'shown.jsonl:2: no message is by the assistant',
    )
    expect(await refused({ text: 'hello' })).toContain(
      'shown.jsonl:2: a demonstration has `messages`',
    )
    expect(await refused({ messages: [user, { role: 'assistant', content: '' }] })).toContain(
      ':2: message 2: the assistant says and calls nothing',
    )
    expect(await refused({ messages: [user, calls('fly'), seen, done] })).toContain(
      'it calls "fly"; the tools are look',
    )
    expect(await refused({ messages: [user, calls('look', 'x'), seen, done] })).toContain(
      'the arguments of look are not a JSON object',
    )
    expect(await refused({ messages: [user, done, done] })).toContain('nothing answers the first')
    expect(await refused({ task: 'other', messages: [user, done] })).toContain('no task "other"')
    expect(await refused({ messages: [{ role: 'robot', content: 'x' }, done] })).toContain('robot')
  })

  it('need tools from somewhere', async () => {
    const nowhere = { environment: undefined as never, tasks: [] }
    await expect(read([{ messages: [user, done] }], nowhere)).rejects.toThrow(
      'no --environment says them',
    )
  })
})
