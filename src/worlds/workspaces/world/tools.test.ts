import { describe, expect, it } from 'vitest'
import { makeLanes } from '../../../base/core/lane.ts'
import { replyOf, type ScriptedCall } from '../../../engine/environments/reply.ts'
import { readTools } from '../../../engine/environments/tools/run-calls.ts'
import { findWalls } from '../../sandboxes/walls.ts'
import { usualFolder, usualLimits } from '../contract.ts'
import { localWorkspaces } from '../local.ts'
import { workspaceTools } from './tools.ts'

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })

/** What the calls of one turn give, in a workspace of their own. */
async function run(...calls: readonly ScriptedCall[]) {
  const workspaces = localWorkspaces({ limits: usualLimits })
  const source = { puts: [], workingFolder: usualFolder }
  await using workspace = await workspaces.open(source, { signal })
  const tools = workspaceTools({ workspace, limits: usualLimits, folder: usualFolder })
  const { runCalls } = await readTools(tools, { scope: 'test', lanes })
  const { records } = await runCalls(replyOf('', ...calls).calls, { signal, messages: [], turn: 0 })
  return records
}

describe.runIf(findWalls().by !== undefined)('the tools of a workspace', () => {
  it('edit a file that is longer than what is shown of it, and leave the rest as it was', async () => {
    const edit = { path: 'long', find: '\n5000\n', replace: '\nfive thousand\n' }
    const [, edited, compared] = await run(
      { tool: 'shell', input: { command: 'seq 10000 | tee before > long' } },
      { tool: 'edit_file', input: edit },
      { tool: 'shell', input: { command: 'diff before long' } },
    )
    expect(edited?.output).toBe('edited long')
    expect(compared?.output).toBe('5000c5000\n< 5000\n---\n> five thousand\n[exit code 1]')
  })

  it('O1: a command or a path that no system takes is an observation', async () => {
    const records = await run(
      { tool: 'shell', input: { command: 'echo a\0b' } },
      { tool: 'shell', input: { command: `echo ${'é'.repeat(70_000)}` } },
      { tool: 'read_file', input: { path: 'a\0b' } },
    )
    expect(records.map(({ problem }) => problem)).toEqual(Array(3).fill('invalid-arguments'))
    const outputs = records.map(({ output }) => output)
    expect(outputs[0]).toContain('command: has a NUL character')
    expect(outputs[1]).toContain('command: has more than 131071 bytes')
  })
})
