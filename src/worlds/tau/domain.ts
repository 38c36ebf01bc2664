import type { ToolDefinition } from '@espalier/text'
import { airlineBooking } from './airline/booking.ts'
import { airlineFlights } from './airline/flights.ts'
import { airlineReservations } from './airline/reservations.ts'
import { retailItems } from './retail/items.ts'
import { retailLookups } from './retail/lookups.ts'
import { retailPayments } from './retail/payments.ts'
import { calculateTool, thinkTool, transferTool } from './shared-tools.ts'
import type { Tables } from './tables.ts'
import type { TauTask } from './task.ts'
import type { TauTool } from './tool.ts'

/** The two worlds of tau-bench. */
export const domainNames = ['retail', 'airline'] as const

/** A world of tau-bench. */
export type DomainName = (typeof domainNames)[number]

/** The tables and the splits that a domain has in an official checkout. */
export const layouts: Readonly<Record<DomainName, DomainLayout>> = {
  retail: {
    tables: ['orders', 'products', 'users'],
    splits: { test: 'TASKS_TEST', train: 'TASKS_TRAIN', dev: 'TASKS_DEV' },
  },
  airline: { tables: ['flights', 'reservations', 'users'], splits: { test: 'TASKS' } },
}

/** What a domain is made of. */
export interface DomainLayout {
  readonly tables: readonly string[]
  /** The Python variable that holds the tasks of each split. */
  readonly splits: Readonly<Record<string, string>>
}

/** The prompts of simulated users and of text agents, with their placeholders. */
export interface TauPrompts {
  readonly user: { readonly plain: string; readonly react: string }
  readonly supervisor: { readonly verify: string; readonly reflect: string }
  readonly policy: { readonly react: string; readonly act: string }
}

/** A domain as it was loaded; shared by every world opened in it. */
export interface TauDomain {
  readonly name: DomainName
  readonly tables: Tables
  readonly tools: readonly ToolDefinition[]
  /** The tools as Python's `json.dumps` writes them, for prompts. */
  readonly toolsText: string
  /** The policy the agent must follow. */
  readonly wiki: string
  readonly rules: readonly string[]
  readonly tasks: Readonly<Record<string, readonly TauTask[]>>
  readonly prompts: TauPrompts
  /** Displays of solved tasks; empty if the data has none. */
  readonly fewShots: readonly string[]
  /** Files that are not those the port was checked against. */
  readonly unfamiliar: readonly string[]
}

function build(name: DomainName, fixed: boolean): ReadonlyMap<string, TauTool> {
  const rules = { fixed }
  const own =
    name === 'retail'
      ? [...retailLookups, ...retailPayments(rules), ...retailItems(rules)]
      : [airlineBooking(rules), ...airlineFlights(rules), ...airlineReservations(rules)]
  const tools = [...own, calculateTool, thinkTool, transferTool]
  return new Map(tools.map(tool => [tool.name, tool]))
}

const faithful = { retail: build('retail', false), airline: build('airline', false) }
const mended = { retail: build('retail', true), airline: build('airline', true) }

/** The implementations of a domain's tools, by name. */
export function toolsOf(name: DomainName, fixed: boolean): ReadonlyMap<string, TauTool> {
  return (fixed ? mended : faithful)[name]
}
