import { textOf } from '@espalier/text'
import { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'
import type { EnvironmentFactory } from '../../engine/environments/factory.ts'
import type { TauServices } from '../tau/factory.ts'
import { priceOption, readScript } from '../tau/options.ts'
import { domainNames, retrievals, Tau2Domain } from './domain.ts'
import { agentKinds, needsJudge, tau2Environment } from './environment.ts'
import { evaluationTypes, type Judge } from './evaluate.ts'
import { splitTasks } from './splits.ts'
import { lineUser, modelUser, type Tau2User, typingUser } from './user.ts'

const options = z.strictObject({
  /** The domain. */
  variant: z.enum(domainNames),
  /** A checkout of tau2-bench. */
  root: z.string().min(1),
  /** A checkout of tau-bench, where a trimmed copy lacks the airline database. */
  predecessor: z.string().optional(),
  split: z.string().optional(),
  agent: z.enum(agentKinds).default('llm'),
  user: z.enum(['llm', 'human', 'scripted']).default('llm'),
  /** The model that plays the user. */
  speaker: z.string().optional(),
  /** A file with the lines of a scripted user. */
  script: z.string().optional(),
  /** The model that judges assertions in words. */
  judge: z.string().optional(),
  /** How banking finds its documents. */
  retrieval: z.enum(retrievals).default('bm25'),
  evaluation: z.enum(evaluationTypes).default('all'),
  temperature: z.coerce.number().min(0).max(2).default(0),
  retries: z.coerce.number().int().min(0).default(2),
  steps: z.coerce.number().int().min(1).default(200),
  errors: z.coerce.number().int().min(1).default(10),
  price: priceOption,
})

type Options = z.output<typeof options>

/** tau2-bench by name: `tau2:telecom,root=DIR,speaker=openai:URL`. */
export function tau2Factory(services: TauServices): EnvironmentFactory {
  return {
    about:
      'Customer service with users who have tools of their own; needs a checkout of tau2-bench.',
    options,
    open: read => openTau2(read as Options, services),
  }
}

async function openTau2(read: Options, services: TauServices): Promise<Environment> {
  const { variant, root, predecessor, retrieval, split, price, agent, evaluation } = read
  const domain = new Tau2Domain({
    domain: variant,
    root,
    retrieval,
    ...(predecessor !== undefined && { predecessor }),
  })
  const judge = await makeJudge(read, services)
  requireJudge(domain, read, judge)
  const environment = tau2Environment({
    domain,
    user: await makeUser(read, services),
    agent,
    evaluation,
    limits: { maxSteps: read.steps, maxErrors: read.errors },
    ...(judge && { judge }),
    ...(split !== undefined && { split }),
    ...(price && { price }),
  })
  // Tasks only reach an environment after its own `readTask` has read them.
  return environment as Environment
}

/** Fails before the first attempt instead of in the middle of a run. */
function requireJudge(
  domain: Tau2Domain,
  { split = 'test', evaluation }: Options,
  judge: Judge | undefined,
): void {
  if (judge) return
  const judged = (splitTasks(domain).get(split) ?? []).filter(task => needsJudge(task, evaluation))
  if (judged.length === 0) return
  throw new Error(
    `${judged.length} tasks of ${domain.name} ${split} have assertions that a model must judge, such as task ${judged[0]?.id}: name one with judge=URI. With evaluation=env only the end of the world counts, which needs no judge.`,
  )
}

async function makeJudge(
  { judge }: Options,
  { openSpeaker }: TauServices,
): Promise<Judge | undefined> {
  if (judge === undefined) return undefined
  const speaker = await openSpeaker(judge)
  return async ({ system, user }) => {
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: user },
    ] as const
    const { message } = await speaker.say(messages, {
      signal: AbortSignal.timeout(600_000),
      temperature: 0,
      maxTokens: 4096,
    })
    return textOf(message.content)
  }
}

async function makeUser(
  { user, agent, speaker, script, temperature, retries }: Options,
  services: TauServices,
): Promise<Tau2User> {
  if (agent === 'solo') return lineUser(['###STOP###'])
  if (user === 'human') {
    const { ask } = services
    if (!ask) throw new Error('A human user needs a terminal to type in.')
    return typingUser((text, call) => ask(text, call))
  }
  if (user === 'scripted') return lineUser(await readScript(script))
  if (speaker === undefined) {
    throw new Error('An llm user is played by a model: name it with speaker=URI.')
  }
  return modelUser(await services.openSpeaker(speaker), { temperature, retries })
}
