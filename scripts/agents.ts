// Runs every harness once, the real program within walls, on a task folder whose tests judge it, with a scripted
// policy: npm run agents -- [NAME…] [--record FOLDER]. Recorded are the requests that it sent and what it printed.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import '../src/offers.ts'
import type { Trajectory } from '../src/base/core/trajectory.ts'
import { roll } from '../src/index.ts'
import { offer, offered } from '../src/run/settings/offered.ts'
import { openEnvironmentNamed } from '../src/run/settings/open-environment.ts'
import { scriptFor } from '../test/harnesses/script.ts'
import { openByteRenderer } from '../test/rolling.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { record: { type: 'string' } },
})
const agents: Readonly<Record<string, string>> = {
  'claude-code': 'claude-code',
  'sub-agents': 'claude-code',
  codex: 'codex',
  opencode: 'opencode',
  'mini-swe-agent': 'mini-swe-agent',
  'compaction-codex': 'codex,context=60000',
  'compaction-opencode': 'opencode,context=60000',
  'compaction-claude-code': 'claude-code,context=130000',
  acp: 'acp,command=opencode acp',
}
const renderer = await openByteRenderer()

interface Sent {
  readonly path: string
  readonly body: unknown
}

let sent: Sent[] = []
const makeDoor = await offered().openModelDoor()
offer({
  ...offered(),
  openModelDoor: async () => () => {
    const door = makeDoor()
    return {
      ...door,
      take: (connection, attempt) =>
        door.take(connection, {
          ...attempt,
          token: attempt.token,
          answer(request, body) {
            sent.push({ path: new URL(request.url).pathname, body: body ?? null })
            return attempt.answer(request, body)
          },
        }),
    }
  },
})

async function run(name: string): Promise<Trajectory> {
  const tasks = 'harbor:test/fixtures/task-folders/greet\\,installs=skipped'
  const environment = await openEnvironmentNamed(
    `harness:${agents[name]},seconds=240,tasks=${tasks}`,
  )
  const limits = { turns: 64, tokens: 1_000_000, context: 2_000_000, newTokens: 4096 }
  const asked = { policy: scriptFor(name, renderer), model: renderer, group: 1, limits }
  for await (const { members, unscored } of roll(environment, 1, asked)) {
    const one = members[0] ?? unscored[0]!
    const reward = 'reward' in one ? one.reward.total : '–'
    const { outcome, turns, fidelity, report, answer } = one.trajectory
    const causes = fidelity.forks.map(({ reason }) => reason)
    console.log(
      [
        name,
        `reward ${reward}`,
        outcome.kind,
        `${turns.length} turns`,
        `${sent.length} requests`,
      ].join('  '),
    )
    if (outcome.kind === 'failed') console.log(`  ${outcome.message}`)
    for (const cause of causes) console.log(`  a path of its own: ${cause}`)
    for (const { kind, detail } of one.trajectory.events) console.log(`  ${kind}: ${detail}`)
    console.log(`  answered ${JSON.stringify(answer)}`)
    if (values.record) {
      mkdirSync(values.record, { recursive: true })
      const text = JSON.stringify({ name, report, sent })
      writeFileSync(join(values.record, `${name}.json.gz`), gzipSync(text, { level: 9 }))
    }
    return one.trajectory
  }
  throw new Error('no group came')
}

let failed = 0
for (const name of positionals.length > 0 ? positionals : Object.keys(agents)) {
  if (!(name in agents)) throw new Error(`no harness ${name}: ${Object.keys(agents).join(', ')}`)
  sent = []
  const { outcome } = await run(name)
  if (outcome.kind !== 'completed') failed++
}
process.exitCode = failed === 0 ? 0 : 1
