import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call } from '../../../base/core/call.ts'
import { describeCause } from '../../../base/core/failure.ts'
import { usualFolder, type Workspace, type Workspaces } from '../contract.ts'
import { readFileIn, writeFileIn } from '../files.ts'

/** What one step of the check found. */
export interface SandboxFound {
  readonly step: string
  readonly passed: boolean
  readonly detail: string
  readonly seconds: number
}

/** A step gives what it found in words, or throws what is wrong. */
type Step = (checked: Checked, call: Call) => Promise<string>

interface Checked {
  readonly workspaces: Workspaces
  /** Opened by the first step, and copied by a later one. */
  workspace?: Workspace
  fork?: Workspace
}

/** An image for sandboxes that are made from one. */
const image = { name: 'docker.io/library/node:22-slim' }

const steps: Readonly<Record<string, Step>> = {
  async start(checked, call) {
    const from = await mkdtemp(join(tmpdir(), 'espalier-check-'))
    try {
      await writeFile(join(from, 'given.txt'), 'given')
      const source = { puts: [{ from, to: usualFolder }], workingFolder: usualFolder, image }
      checked.workspace = await checked.workspaces.open(source, call)
    } finally {
      await rm(from, { recursive: true, force: true })
    }
    return `a workspace of ${checked.workspaces.name}, with a folder of this machine in it`
  },
  async run({ workspace }, call) {
    const script = 'cat given.txt; cat; echo "$SAID"; echo wrong >&2; exit 3'
    const more = { ...call, input: ' and read\n', variables: { SAID: 'said' }, seconds: 60 }
    const ran = await workspace!.run(['/bin/sh', '-c', script], more)
    const isRight = ran.code === 3 && ran.output === 'given and read\nsaid\n'
    if (isRight && ran.complaints === 'wrong\n') return 'input, output, variables and exit code'
    throw new Error(`a command answered ${JSON.stringify(ran)}`)
  },
  async end({ workspace }, call) {
    const ran = await workspace!.run(['sleep', '600'], { ...call, seconds: 2 })
    if (ran.end !== 'out-of-time') throw new Error(`sleep answered ${JSON.stringify(ran)}`)
    return 'a command that takes too long is ended'
  },
  async network({ workspace }, call) {
    const ran = await workspace!.run(
      ['/bin/bash', '-c', 'exec 3<>/dev/tcp/1.1.1.1/443 && echo reached'],
      { ...call, seconds: 10 },
    )
    if (ran.code === 127) return 'not tried: there is no bash inside'
    if (!ran.output.includes('reached')) return 'nothing outside can be reached'
    throw new Error('a command reached 1.1.1.1, though the network should be closed')
  },
  async fork(checked, call) {
    checked.fork = await checked.workspace!.fork(call)
    await writeFileIn(checked.fork, { path: 'given.txt', text: 'other' }, call)
    const [there, here] = await Promise.all(
      [checked.fork, checked.workspace!].map(each => readFileIn(each, 'given.txt', call)),
    )
    if (there === 'other' && here === 'given') return 'a copy that goes its own way'
    throw new Error(`the copy has ${there}, and the original ${here}`)
  },
  async cost({ workspace, fork }) {
    const uses = [workspace, fork].flatMap(each => each?.use?.() ?? [])
    if (uses.length === 0) return 'nobody has to be paid'
    const seconds = uses.reduce((sum, use) => sum + use.seconds, 0)
    const cost = uses.reduce((sum, use) => sum + (use.cost ?? 0), 0)
    const priced = uses[0]?.cost === undefined ? 'no price was named' : `${cost.toFixed(4)}`
    return `${seconds.toFixed(1)} seconds of ${uses.length} machines: ${priced}`
  },
}

/** Tries everything that attempts need of a sandbox, and leaves nothing running. */
export async function* checkSandbox(
  workspaces: Workspaces,
  call: Call,
): AsyncGenerator<SandboxFound> {
  const checked: Checked = { workspaces }
  for (const [step, work] of Object.entries(steps)) {
    yield await tried(step, () => work(checked, call))
    if (!checked.workspace) break
  }
  yield await tried('dispose', () => disposeOf(checked))
}

async function disposeOf({ workspaces, workspace, fork }: Checked): Promise<string> {
  await fork?.[Symbol.asyncDispose]()
  await workspace?.[Symbol.asyncDispose]()
  await workspaces[Symbol.asyncDispose]()
  return 'nothing is left'
}

async function tried(step: string, work: () => Promise<string>): Promise<SandboxFound> {
  const began = performance.now()
  const seconds = (): number => Math.round(performance.now() - began) / 1000
  try {
    return { step, passed: true, detail: await work(), seconds: seconds() }
  } catch (cause) {
    return { step, passed: false, detail: describeCause(cause), seconds: seconds() }
  }
}
