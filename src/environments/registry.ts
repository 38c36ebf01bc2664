import { z } from 'zod'
import type { Environment } from '../core/environment.ts'
import { parsePartName, UnknownPartError } from '../names/part-name.ts'
import { calculator } from './built-in/calculator.ts'
import { keyValue } from './built-in/key-value.ts'
import { singleTurn } from './built-in/single-turn.ts'
import { toolLoop } from './built-in/tool-loop.ts'
import { desk } from './desk/desk.ts'
import { harbor, harborOptions } from './harbor/harbor.ts'
import { interpreterOptions, openInterpreterNamed } from './interpreter/interpreter.ts'
import { repair } from './repair/repair.ts'
import { openMcpTools } from './tools/mcp.ts'
import { reachWorkspaces, workspaceOptions } from './workspace/open.ts'

/** An environment that can be opened by name. */
export interface EnvironmentFactory {
  /** One sentence for people. */
  readonly about: string
  /** Reads the options, whose values are texts; `variant` is what a bare first item gives. */
  readonly options: z.ZodObject
  /** Opens it with options that `options` has read. */
  open(options: unknown): Environment | Promise<Environment>
}

/** Makes an entry of the table below, with the type of its options inferred from their schema. */
export function environmentFactory<Options extends z.ZodObject>(factory: {
  readonly about: string
  readonly options: Options
  readonly open: (options: z.output<Options>) => Environment | Promise<Environment>
}): EnvironmentFactory {
  return { ...factory, open: options => factory.open(options as z.output<Options>) }
}

const match = z.enum(['exact', 'number']).default('exact')

/** The environments that can be named. */
export const builtInEnvironments: Readonly<Record<string, EnvironmentFactory>> = {
  calculator: environmentFactory({
    about: 'Arithmetic with a tool that calculates; makes its own tasks.',
    options: z.strictObject({}),
    open: calculator,
  }),
  interpreter: environmentFactory({
    about: 'Python or JavaScript in a closed process, an answer compared; makes its own tasks.',
    options: interpreterOptions,
    open: openInterpreterNamed,
  }),
  desk: environmentFactory({
    about:
      'A service desk with a customer, a database and rules to be found out; makes its own tasks.',
    options: z.strictObject({
      level: z
        .enum(['1', '2', '3', 'mixed'])
        .default('mixed')
        .transform(level => (level === 'mixed' ? level : (Number(level) as 1 | 2 | 3))),
      length: z.enum(['short', 'long']).default('short'),
      rules: z.enum(['hidden', 'told']).default('hidden'),
    }),
    open: desk,
  }),
  'key-value': environmentFactory({
    about: 'A small store behind four tools; makes its own tasks.',
    options: z.strictObject({}),
    open: keyValue,
  }),
  harbor: environmentFactory({
    about: 'Task folders of Harbor or terminal-bench: files, a shell, their own tests as reward.',
    options: harborOptions,
    open: async ({ variant, ...options }) => harbor(variant, await reachWorkspaces(options)),
  }),
  repair: environmentFactory({
    about:
      'Small programs with a mistake each, files and a shell, tests as reward; makes its own tasks.',
    options: workspaceOptions,
    open: async options => repair(await reachWorkspaces(options)),
  }),
  'single-turn': environmentFactory({
    about: 'One prompt, one answer, compared with the task’s answer.',
    options: z.strictObject({ match }),
    open: singleTurn,
  }),
  'tool-loop': environmentFactory({
    about: 'A prompt, the tools of an MCP server, an answer compared with the task’s.',
    options: z.strictObject({ match, mcp: z.url() }),
    open: ({ mcp, match }) =>
      toolLoop({
        match,
        tools: call => openMcpTools({ url: mcp }, call).then(({ tools }) => tools),
      }),
  }),
}

/** Loads a factory when its environment is named. */
export type LateFactory = () => Promise<EnvironmentFactory>

/**
 * Opens an environment as it is named on a command line, `NAME[:ITEM,…]`. `factories` adds to the
 * built-in ones.
 */
export async function openEnvironment(
  text: string,
  factories: Readonly<Record<string, EnvironmentFactory | LateFactory>> = {},
): Promise<Environment> {
  const { name, variant, options } = parsePartName(text)
  const known = new Map(Object.entries({ ...builtInEnvironments, ...factories }))
  const found = known.get(name)
  if (!found) throw new UnknownPartError('environment', name, [...known.keys()])
  const factory = typeof found === 'function' ? await found() : found
  const given = { ...Object.fromEntries(options), ...(variant !== undefined && { variant }) }
  const read = factory.options.safeParse(given)
  if (!read.success) throw new TypeError(describeProblems(name, factory, read.error))
  return await factory.open(read.data)
}

function describeProblems(
  name: string,
  { options }: EnvironmentFactory,
  error: z.ZodError,
): string {
  const problems = error.issues.map(issue =>
    issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message,
  )
  const keys = Object.keys(options.shape)
  const known = keys.length > 0 ? `Its options: ${keys.join(', ')}.` : 'It has no options.'
  return `Environment "${name}": ${problems.join('; ')}. ${known}`
}
