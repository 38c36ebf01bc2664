import type { Call } from '../../../base/core/call.ts'
import { parseBounded, readBounded } from '../../../base/core/process/bounded.ts'

/** Programs that serve Tinker's API, each with its own deviations. */
export type TinkerServerName = 'tinker' | 'skyrl' | 'tuft' | 'twinkle'

/** What has to be known of a server, since it does not say so itself. */
export interface TinkerServerKind {
  readonly name: TinkerServerName
  /** The losses it has; it refuses other names, or silently uses another loss. */
  readonly losses: readonly string[]
  /**
   * Whether its cross-entropy is the plain sum of log-probabilities times weights of either sign, so
   * that any gradient can be sent as weights.
   */
  readonly takesSlopes: boolean
  /** What it divides a row's sum by: nothing, or as many tokens as have a weight. */
  readonly divides: 'nothing' | 'trained'
  /** Whether another program at the same address divides by nothing, and tells itself by reporting metrics. */
  readonly mayDivideNothing: boolean
  /** Whether it averages over the rows of each request, so that larger requests count less. */
  readonly averagesRequests: boolean
  /** Whether it takes `weights`, and needs them to know which tokens are trained. */
  readonly takesWeights: boolean
  /** Whether requests have to hold an even number of rows. */
  readonly evenRows: boolean
  /** The largest rank it takes unless it was started with another. */
  readonly rank: number
  /** Whether the client chooses which maps an adapter changes. */
  readonly takesTargets: boolean
  /** Whether it takes the largest norm of a gradient. */
  readonly clipsGradients: boolean
  /** Whether it returns log-probabilities of a prompt. */
  readonly scores: boolean
  /** Whether the same seed gives the same sample. */
  readonly usesSeeds: boolean
  /** Whether samples come from the weights that were published last, also while the model learns. */
  readonly samplesApart: boolean
}

const plain: TinkerServerKind = {
  name: 'tinker',
  losses: ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro', 'gspo'],
  takesSlopes: true,
  divides: 'nothing',
  mayDivideNothing: false,
  averagesRequests: false,
  takesWeights: false,
  evenRows: false,
  rank: 32,
  takesTargets: true,
  clipsGradients: true,
  scores: true,
  usesSeeds: true,
  samplesApart: true,
}

/** The servers, as read in SkyRL 0.3.0 and a956457, TuFT 0.2.2 and Twinkle 0.5.1. */
export const tinkerServers: Readonly<Record<TinkerServerName, TinkerServerKind>> = {
  tinker: plain,
  skyrl: {
    ...plain,
    name: 'skyrl',
    losses: ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'],
    // Its JAX backend divides by the sum of the weights, which is meaningless for slopes of both signs.
    takesSlopes: false,
    divides: 'trained',
    // SkyRL-Train, on GPUs.
    mayDivideNothing: true,
    takesWeights: true,
    // It changes attention and MLP whatever is asked for (0.3.0, api.create_model).
    takesTargets: false,
    clipsGradients: false,
    // Its JAX backend samples from the adapter that it trains (0.3.0, load_sampler_weights).
    samplesApart: false,
  },
  tuft: {
    ...plain,
    name: 'tuft',
    losses: ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro'],
    rank: 16,
  },
  twinkle: {
    ...plain,
    name: 'twinkle',
    // Any other name is silently trained as cross-entropy there.
    losses: ['cross_entropy', 'importance_sampling'],
    takesSlopes: false,
    divides: 'trained',
    averagesRequests: true,
    takesWeights: true,
    evenRows: true,
    // It does not pass the request for a prompt's log-probabilities on to its sampler.
    scores: false,
    usesSeeds: false,
  },
}

/**
 * Which server it is, by the OpenAPI description that the open-source ones publish. A server without
 * one is taken for Tinker's own service.
 */
export async function findServerKind(base: string, call: Call): Promise<TinkerServerKind> {
  for (const place of ['openapi.json', 'api/v1/openapi.json']) {
    const described = await describedAt(`${base}/${place}`, call)
    if (described) return kindOf(described)
  }
  return plain
}

interface Described {
  readonly info?: { readonly title?: unknown }
  readonly paths?: Readonly<Record<string, unknown>>
}

const largestDescription = 16 * 2 ** 20

async function describedAt(url: string, { signal }: Call): Promise<Described | undefined> {
  try {
    const { request } = await import('undici')
    const { statusCode, body } = await request(url, { signal })
    const text = (await readBounded(body, largestDescription)).toString('utf8')
    const found: unknown = statusCode === 200 ? parseBounded(text) : undefined
    return typeof found === 'object' && found !== null ? (found as Described) : undefined
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

function kindOf({ info, paths }: Described): TinkerServerKind {
  const title = String(info?.title ?? '')
  const all = Object.keys(paths ?? {})
  if (/tuft/i.test(title)) return tinkerServers.tuft
  if (all.some(path => path.includes('twinkle'))) return tinkerServers.twinkle
  return /skyrl|tinker api mock/i.test(title) ? tinkerServers.skyrl : plain
}
