import { z } from 'zod'
import { parsePartName, UnknownPartError } from '../../../base/core/names/part-name.ts'
import { containerWorkspaces } from '../container.ts'
import type { WorkspaceLimits, Workspaces } from '../contract.ts'
import { localWorkspaces } from '../local.ts'
import { remoteWorkspaces } from '../remote.ts'

/** A kind of sandbox as it is named: `KIND[:ITEM,…]`. */
export interface SandboxKind {
  /** Reads the items, whose values are texts; `variant` is what a bare first item gives. */
  readonly options: z.ZodObject
  /** Opens it with options that `options` has read; throws if nothing answers. */
  open(options: unknown, limits: WorkspaceLimits): Workspaces | Promise<Workspaces>
}

/** Makes a kind, with the type of its options inferred from their schema. */
export function sandboxKind<Options extends z.ZodObject>(kind: {
  readonly options: Options
  readonly open: (
    options: z.output<Options>,
    limits: WorkspaceLimits,
  ) => Workspaces | Promise<Workspaces>
}): SandboxKind {
  return { ...kind, open: (options, limits) => kind.open(options as z.output<Options>, limits) }
}

const engine = (name: 'docker' | 'podman') => async () =>
  sandboxKind({
    options: z.strictObject({}),
    open: (_, limits) => containerWorkspaces({ engine: name, limits }),
  })

/** The kinds of sandboxes that can be named; each is loaded when it is. */
const kinds: Readonly<Record<string, () => Promise<SandboxKind>>> = {
  local: async () =>
    sandboxKind({
      options: z.strictObject({
        walls: z.enum(['required', 'none']).optional(),
        toolchain: z.string().min(1).optional(),
      }),
      open: (options, limits) => localWorkspaces({ ...options, limits }),
    }),
  docker: engine('docker'),
  podman: engine('podman'),
  container: async () =>
    sandboxKind({
      options: z.strictObject({ variant: z.enum(['docker', 'podman']).default('docker') }),
      open: ({ variant }, limits) => containerWorkspaces({ engine: variant, limits }),
    }),
  remote: async () =>
    sandboxKind({
      options: z.strictObject({
        variant: address(),
        /** The variable of the process that holds the key of the server. */
        'key-variable': z.string().min(1).optional(),
      }),
      open: ({ variant: url, 'key-variable': variable }) =>
        remoteWorkspaces({ url, key: keyIn(variable) }),
    }),
  e2b: async () =>
    sandboxKind({
      options: z.strictObject({
        ...vendorItems(),
        'key-variable': z.string().min(1).default('E2B_API_KEY'),
        template: z.string().min(1).optional(),
        domain: z.string().min(1).optional(),
        api: address().optional(),
        machines: address().optional(),
        fork: z.enum(['fork', 'snapshot']).optional(),
      }),
      open: async ({ 'key-variable': variable, ...options }, limits) =>
        (await import('../vendors/e2b.ts')).e2bWorkspaces({
          ...options,
          limits,
          key: keyIn(variable),
        }),
    }),
  daytona: async () =>
    sandboxKind({
      options: z.strictObject({
        ...vendorItems(),
        'key-variable': z.string().min(1).default('DAYTONA_API_KEY'),
        api: address().optional(),
        target: z.string().min(1).optional(),
        snapshot: z.string().min(1).optional(),
        image: z.string().min(1).optional(),
      }),
      open: async ({ 'key-variable': variable, ...options }, limits) =>
        (await import('../vendors/daytona.ts')).daytonaWorkspaces({
          ...options,
          limits,
          key: keyIn(variable),
        }),
    }),
}

const address = () => z.url({ protocol: /^https?$/ })

/** The items that every vendor takes. */
function vendorItems() {
  return {
    lease: z.coerce.number().int().min(60).max(86_400).optional(),
    starts: z.coerce.number().positive().max(1000).optional(),
    patience: z.coerce.number().min(0).max(86_400).optional(),
    pause: z.coerce.number().min(0).max(86_400).optional(),
    price: z.coerce.number().min(0).optional(),
  }
}

/** Opens a sandbox by its name: `podman`, `remote:http://machine:8100`, or that address alone. */
export async function openSandbox(text: string, limits: WorkspaceLimits): Promise<Workspaces> {
  const { name, variant, options } = parsePartName(
    /^https?:\/\//.test(text) ? `remote:${text}` : text,
  )
  if (!Object.hasOwn(kinds, name)) throw new UnknownPartError('sandbox', name, Object.keys(kinds))
  const kind = await kinds[name]!()
  const given = { ...Object.fromEntries(options), ...(variant !== undefined && { variant }) }
  const read = kind.options.safeParse(given)
  if (read.success) return await kind.open(read.data, limits)
  throw new TypeError(`Sandbox "${name}": ${z.prettifyError(read.error).replaceAll('\n', ' ')}`)
}

/** The key in a variable of this process; a variable that is named must be set. */
function keyIn(variable: string): string
function keyIn(variable: string | undefined): string | undefined
function keyIn(variable: string | undefined): string | undefined {
  const key = variable === undefined ? undefined : process.env[variable]
  if (variable !== undefined && !key) throw new Error(`the variable ${variable} is not set`)
  return key
}
