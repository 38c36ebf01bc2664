import { z } from 'zod'
import type { Call } from '../../base/core/call.ts'
import type { Environment } from '../../base/core/environment.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import type { EnvironmentFactory } from '../../engine/environments/factory.ts'
import { SimulatedUser } from '../../engine/environments/users/simulated.ts'
import { userStrategies } from '../../engine/environments/users/strategy.ts'
import { humanUser, type OpenUser, scriptedUser } from '../../engine/environments/users/user.ts'
import { agentKinds } from './agents.ts'
import { domainNames, type TauDomain } from './domain.ts'
import { tauEnvironment } from './environment.ts'
import { loadTau } from './load.ts'
import { priceOption, readScript } from './options.ts'
import { userPrompts } from './prompts.ts'
import type { TauTaskData } from './task.ts'

/** What tau-bench needs from outside its room. */
export interface TauServices {
  /** Opens the model that plays the user, from the text of the option `speaker`. */
  openSpeaker(text: string): Speaker | Promise<Speaker>
  /** Shows a person a text and gives what they typed. */
  ask?(text: string, call: Call): Promise<string>
  /** Called when the data differs from the data that the port was checked against. */
  warn?(text: string): void
}

const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform(text => text === 'true')

const options = z.strictObject({
  /** The domain. */
  variant: z.enum(domainNames),
  /** A checkout of tau-bench, or a packed folder. */
  root: z.string().min(1),
  split: z.string().optional(),
  agent: z.enum(agentKinds).default('tool-calling'),
  user: z.enum([...userStrategies, 'human', 'scripted']).default('llm'),
  /** The model that plays the user. */
  speaker: z.string().optional(),
  /** A file with the lines of a scripted user. */
  script: z.string().optional(),
  /** The temperature of that model. The original does not set it, so this is OpenAI's default. */
  temperature: z.coerce.number().min(0).max(2).default(1),
  /** Times to ask a simulated user again for a reply that cannot be read. */
  retries: z.coerce.number().int().min(0).default(2),
  price: priceOption,
  fixed: flag,
  instruction: flag,
})

type Options = z.output<typeof options>

/** tau-bench by name: `tau:retail,root=DIR,speaker=openai:URL`. */
export function tauFactory(services: TauServices): EnvironmentFactory {
  return {
    about: 'Customer service with a simulated user and tools over a database; needs its data.',
    options,
    open: read => openTau(read as Options, services),
  }
}

async function openTau(read: Options, services: TauServices): Promise<Environment> {
  const domain = await loadTau({ root: read.root, domain: read.variant })
  if (domain.unfamiliar.length > 0) {
    services.warn?.(
      `tau-bench ${domain.name}: results may not compare, these files are not the known ones: ${domain.unfamiliar.join(', ')}.`,
    )
  }
  const environment: Environment<TauTaskData> = tauEnvironment({
    domain,
    user: await makeUser(domain, read, services),
    agent: read.agent,
    fixed: read.fixed,
    toolInstruction: read.instruction,
    ...(read.split !== undefined && { split: read.split }),
    ...(read.price && { price: read.price }),
  })
  // Tasks only reach an environment after its own `readTask` has read them.
  return environment as Environment
}

async function makeUser(
  domain: TauDomain,
  { user, speaker, script, retries, temperature, fixed }: Options,
  services: TauServices,
): Promise<OpenUser> {
  if (user === 'human') {
    const { ask } = services
    if (!ask) throw new Error('A human user needs a terminal to type in.')
    return () => humanUser((text, call) => ask(text, call))
  }
  if (user === 'scripted') {
    const lines = await readScript(script)
    return () => scriptedUser(lines)
  }
  if (speaker === undefined) {
    throw new Error(`A ${user} user is played by a model: name it with speaker=URI.`)
  }
  const opened = await services.openSpeaker(speaker)
  const prompts = userPrompts(domain.prompts)
  const rest = { strategy: user, prompts, retries, temperature, hideThought: fixed }
  return ({ seed }) => new SimulatedUser(opened, { ...rest, seed })
}
