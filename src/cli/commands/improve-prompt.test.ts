import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openHouse } from '../../../bench/prompts/house-rules.ts'
import { runCommand } from '../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-improve-'))
const environment = join(folder, 'house.ts')
writeFileSync(
  environment,
  `import { environment } from 'espalier'
import { z } from 'zod'
export const house = environment({
  name: 'house',
  task: z.object({ kind: z.int(), asker: z.int() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: \`Question of kind \${data.kind}.\` }] }),
  reward: { right: ({ task, answer }) => Number(answer === \`answer \${task.data.kind}\`) },
})
`,
)
const tasks = join(folder, 'tasks.jsonl')
writeFileSync(
  tasks,
  Array.from(
    { length: 30 },
    (_, id) => `${JSON.stringify({ id, kind: id % 3, asker: id })}\n`,
  ).join(''),
)
const words = (url: string, command: string, ...more: readonly string[]): readonly string[] => [
  command,
  ...['--policy', `openai:${url}`, '--model', resolve('base-model')],
  ...['--environment', `${environment}#house`, '--tasks', tasks, '--json'],
  ...more,
]

describe('espalier improve-prompt', () => {
  it('writes a prompt that other commands take, and never pays twice for what was tried', async () => {
    await using served = await openHouse()
    const out = join(folder, 'prompt')
    const first = await runCommand(words(served.url, 'improve-prompt', '--out', out))
    const improved = JSON.parse(first.stdout)
    expect(improved).toMatchObject({ successBefore: 0, successAfter: 1, tokens: {} })
    expect(readFileSync(join(out, 'report.md'), 'utf8')).toContain('| prompt | 0.000 | 1.000 |')
    // A killed process leaves half a line.
    appendFileSync(join(out, 'tries.jsonl'), '{"kind":"try","prom')
    const length = readFileSync(join(out, 'tries.jsonl')).length
    const again = await runCommand(words(served.url, 'improve-prompt', '--out', out))
    expect(JSON.parse(again.stdout).prompt).toEqual(improved.prompt)
    expect(readFileSync(join(out, 'tries.jsonl'))).toHaveLength(length)
    const told = ['--prompt', join(out, 'prompt.json'), '--out', join(folder, 'told')]
    const { stdout } = await runCommand(words(served.url, 'eval', ...told))
    expect(JSON.parse(stdout).success.value).toBe(1)
  })

  it.each([
    ['{"system": 3}', 'a prompt is a JSON object with "system"'],
    ['no json', 'a prompt is a JSON object with "system"'],
    [undefined, 'there is no such file'],
  ])('refuses --prompt with %s', async (content, said) => {
    await using served = await openHouse()
    const file = join(folder, content === undefined ? 'none.json' : 'bad.json')
    if (content !== undefined) writeFileSync(file, content)
    const { code, stderr } = await runCommand(words(served.url, 'eval', '--prompt', file))
    expect([code, stderr]).toEqual([2, expect.stringContaining(said)])
  })

  it('refuses agents, who decide themselves what their model is told', async () => {
    await using served = await openHouse()
    const agent = join(folder, 'agent.ts')
    writeFileSync(agent, 'export default async () => "done"\n')
    const rest = words(served.url, 'improve-prompt').filter(word => !word.includes('house.ts'))
    const asked = rest.map(word => (word === '--environment' ? `--agent=${agent}` : word))
    const { code, stderr } = await runCommand(asked)
    expect([code, stderr]).toEqual([2, expect.stringContaining('decides itself')])
  })
})
