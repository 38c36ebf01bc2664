import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { type Started, scratch, start } from './cli.ts'

const folder = scratch()
const running: Started[] = []
afterAll(() => {
  for (const { child } of running) child.kill('SIGKILL')
})

/** Starts the service over a run folder and gives its address. */
async function serve(
  out = 'run',
  what = ['--environment', 'single-turn'],
): Promise<{ readonly url: string; readonly started: Started }> {
  const words = ['rollouts', '--policy', 'scripted:answers.jsonl', ...what]
  const started = start([...words, '--group', '2', '--port', '0', '--out', out, '--json'], {
    folder,
  })
  running.push(started)
  const [line] = (await once(started.child.stdout!, 'data')) as [Buffer]
  const { url } = JSON.parse(line.toString()) as { url: string }
  return { url, started }
}

interface Taken {
  readonly cursor: number
  readonly index: number
}

async function take(url: string, after: number, max: number): Promise<readonly Taken[]> {
  const answer = await fetch(`${url}/v1/rollouts/one/groups?after=${after}&max=${max}&wait=30`)
  const { groups } = (await answer.json()) as { groups: readonly Taken[] }
  return groups
}

it('H7: rollouts that is killed goes on with --out, groups that nobody took included', async () => {
  writeFileSync(join(folder, 'answers.jsonl'), JSON.stringify({ text: 'a' }))
  const tasks = Array.from({ length: 6 }, (_, at) => ({ prompt: `task ${at}`, answer: 'a' }))
  const before = await serve()
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ id: 'one', tasks })
  const sent = await fetch(`${before.url}/v1/rollouts`, { method: 'POST', headers, body })
  expect(sent.status, await sent.text()).toBe(202)
  const seen: Taken[] = []
  while (seen.length < 2) seen.push(...(await take(before.url, seen.at(-1)?.cursor ?? 0, 1)))
  // The first was taken for good: whoever asks for what is behind it has it.
  before.started.child.kill('SIGKILL')
  await before.started.finished
  const after = await serve()
  const rest: Taken[] = []
  while (rest.length < 5) rest.push(...(await take(after.url, rest.at(-1)?.cursor ?? 1, 64)))
  expect(rest[0]).toEqual(seen[1])
  const indices = [seen[0]!, ...rest].map(({ index }) => index)
  expect(indices.toSorted()).toEqual([0, 1, 2, 3, 4, 5])
})

it.runIf(process.platform === 'linux')(
  'H7: rollouts whose disk was full for a moment takes submissions again, and starts again',
  async () => {
    writeFileSync(join(folder, 'answers.jsonl'), JSON.stringify({ text: 'a' }))
    const before = await serve('full')
    const { pid } = before.started.child
    const limit = (bytes: number | string) =>
      expect(spawnSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:`]).status).toBe(0)
    const send = async (id: string): Promise<number> => {
      const body = JSON.stringify({ id, tasks: [{ prompt: id.repeat(200), answer: 'a' }] })
      const headers = { 'content-type': 'application/json' }
      const url = `${before.url}/v1/rollouts`
      return (await fetch(url, { method: 'POST', headers, body })).status
    }
    limit(100)
    expect(await send('refused')).toBeGreaterThanOrEqual(500)
    limit('unlimited')
    await vi.waitFor(async () => expect(await send('one')).toBe(202))
    before.started.child.kill('SIGKILL')
    await before.started.finished
    const after = await serve('full')
    expect((await take(after.url, 0, 1)).length).toBe(1)
    const refused = await fetch(`${after.url}/v1/rollouts/refused`)
    expect(refused.status).toBe(404)
  },
)

const agent = `
import { existsSync } from 'node:fs'
import { once } from 'node:events'
export const patient = async ({ speaker, signal }) => {
  if (!existsSync('go')) await once(signal, 'abort')
  signal.throwIfAborted()
  await speaker.say([{ role: 'user', content: 'Well?' }], { signal })
  return 1
}
`

it('H7: rollouts that is stopped in order goes on with --out, what was under way included', async () => {
  writeFileSync(join(folder, 'answers.jsonl'), JSON.stringify({ text: 'a' }))
  writeFileSync(join(folder, 'patient.mjs'), agent)
  const what = ['--agent', './patient.mjs#patient']
  const before = await serve('stopped', what)
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ id: 'one', tasks: [{ number: 1 }, { number: 2 }] })
  const sent = await fetch(`${before.url}/v1/rollouts`, { method: 'POST', headers, body })
  expect(sent.status, await sent.text()).toBe(202)
  before.started.child.kill('SIGTERM')
  expect((await before.started.finished).code).toBe(0)
  writeFileSync(join(folder, 'go'), '')
  const after = await serve('stopped', what)
  const taken: Taken[] = []
  while (taken.length < 2) taken.push(...(await take(after.url, taken.at(-1)?.cursor ?? 0, 64)))
  expect(taken.map(({ index }) => index).toSorted()).toEqual([0, 1])
})

it('rollouts goes on with no run but that of a service', async () => {
  writeFileSync(join(folder, 'answers.jsonl'), JSON.stringify({ text: 'a' }))
  writeFileSync(join(folder, 'tasks.jsonl'), JSON.stringify({ prompt: 'b', answer: 'a' }))
  const words = ['--policy', 'scripted:answers.jsonl', '--environment', 'single-turn']
  const rolled = [...words, '--tasks', 'tasks.jsonl', '--out', 'rolled']
  expect((await start(['roll', ...rolled], { folder }).finished).code).toBe(0)
  const { code, stderr } = await start(['rollouts', ...rolled, '--port', '0'], { folder }).finished
  expect(stderr).toContain('--out rolled: this is a run of espalier roll; choose another folder')
  expect(code).toBe(2)
})
