import { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import { type EnvironmentFactory, environmentFactory } from '../../engine/environments/factory.ts'
import { late } from '../../engine/environments/late.ts'
import { harbor } from '../harbor/harbor.ts'
import { repair } from '../repair/repair.ts'
import type { Workspaces } from '../workspaces/contract.ts'
import { localWorkspaces } from '../workspaces/local.ts'
import { openSandbox } from '../workspaces/world/kinds.ts'
import { workspaceOptions } from '../workspaces/world/named.ts'
import { limitsOf } from '../workspaces/world/open.ts'
import { acp } from './acp.ts'
import { answers } from './answers.ts'
import { claudeCode } from './claude-code.ts'
import { codex } from './codex.ts'
import type { Harness, OpenedHarness } from './contract.ts'
import { harness } from './harness.ts'
import { miniSweAgent } from './mini-swe-agent.ts'
import { openCode } from './opencode.ts'
import { commandHere, wordsOf } from './programs/here.ts'
import { installHere } from './programs/install.ts'

/** The harnesses that have a file of their own. */
const harnesses: Readonly<Record<string, Harness>> = {
  'claude-code': claudeCode,
  codex,
  'mini-swe-agent': miniSweAgent,
  opencode: openCode,
}

const options = workspaceOptions.omit({ 'key-variable': true, walls: true }).extend({
  variant: z.enum(['acp', ...Object.keys(harnesses)]),
  /** The command line of `acp`. */
  command: z.string().min(1).optional(),
  /** Whose tasks: `repair`, `harbor:DIR`. @default those of a file */
  tasks: z.string().min(1).optional(),
  network: z.enum(['none', 'outside']).optional(),
  /** Tokens that a conversation may have before the program compacts it. */
  context: z.coerce.number().int().min(1000).optional(),
})
type Options = z.output<typeof options>

/** Seconds that a harness may take, and what it needs more than a command does. */
const roomy = { seconds: 1800, processes: 1024, disk: 4096, memory: 8192 }

/** `harness`, opened by name; `--agent claude-code` and its like become one. */
export function harnessFactory(tell: (text: string) => void): EnvironmentFactory {
  return environmentFactory({
    about: 'A program of others as the agent: claude-code, codex, opencode, mini-swe-agent, acp.',
    options,
    async open(given) {
      const limits = limitsOf({ ...roomy, ...withoutUndefined(given) })
      const workspaces = await openPlace(given, limits)
      await refuseSilent(workspaces)
      return harness({
        workspaces,
        opened: await findHarness(given, workspaces, tell),
        environment: places => environmentFor(given, places),
        seconds: limits.seconds,
        network: given.network,
        context: given.context,
      })
    },
  })
}

function withoutUndefined({ seconds, memory, disk }: Options) {
  return {
    ...(seconds !== undefined && { seconds }),
    ...(memory !== undefined && { memory }),
    ...(disk !== undefined && { disk }),
  }
}

/** A harness is talked to while it runs; places in which nothing can be are refused before anything begins. */
async function refuseSilent(workspaces: Workspaces): Promise<void> {
  if (workspaces.talks) return
  await workspaces[Symbol.asyncDispose]()
  throw new Error(
    `no harness runs in ${workspaces.name}, whose commands cannot be talked to while they run: ` +
      'leave out --sandbox for walls of this machine, or name docker, podman, e2b, daytona or an `espalier sandbox serve`',
  )
}

function openPlace(
  { sandbox, toolchain }: Options,
  limits: Parameters<typeof openSandbox>[1],
): Promise<Workspaces> | Workspaces {
  return sandbox === undefined
    ? localWorkspaces({ limits, toolchain })
    : openSandbox(sandbox, limits)
}

/** Finds the program here, or leaves that to the sandbox if it is elsewhere. */
async function findHarness(
  { variant, command }: Options,
  { shows }: Workspaces,
  tell: (text: string) => void,
): Promise<OpenedHarness | Pick<OpenedHarness, 'harness'>> {
  if (variant === 'acp') {
    if (command === undefined) throw new Error('acp needs a command line: acp:COMMAND')
    const harness: Harness = { ...acp, install: { program: command, from: { npm: command } } }
    if (shows) return { harness, ...commandHere(command) }
    return { harness, program: wordsOf(command), shown: [] }
  }
  const harness = harnesses[variant]!
  return shows ? { harness, ...(await installHere(harness, tell)) } : { harness }
}

const harborItems = late(() =>
  z.strictObject({ installs: z.enum(['refused', 'skipped']).optional() }),
)

function environmentFor({ tasks }: Options, sandbox: Workspaces): Environment {
  if (tasks === undefined) return answers(sandbox)
  const { name, variant, options: items } = parsePartName(tasks)
  if (name === 'repair') {
    const node = sandbox.shows ? process.execPath : 'node'
    return repair({ sandbox, node, test: `\`${node} tests.mjs\`` })
  }
  if (name === 'harbor' && variant !== undefined) {
    return harbor(variant, { sandbox, ...harborItems().parse(Object.fromEntries(items)) })
  }
  throw new Error(`no harness attempts the tasks of ${tasks}: name harbor:DIR, a file, or a number`)
}
