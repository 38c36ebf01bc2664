import type { Call } from '../../../base/core/call.ts'

/** What machines are marked with, so that they can be found again. */
export type Labels = Readonly<Record<string, string>>

/** What a machine is started with. */
export interface MachineSource extends Call {
  readonly labels: Labels
  readonly network: 'none' | 'outside'
  /** Seconds after which the vendor ends it, whatever became of us. */
  readonly lease: number
  /** The image that a task names, for vendors that start from one. */
  readonly image?: string | undefined
}

/** How long something on a machine may take. */
export interface MachineCall extends Call {
  readonly seconds: number
}

/** What hears a line of shell that is talked to. */
export interface TalkCall extends MachineCall {
  onOutput(text: string): void
}

/** A line of shell that is talked to while it runs. */
export interface Talk {
  write(part: Buffer): Promise<unknown>
  /** Ends its input. */
  finish(): Promise<unknown>
  /** Its exit code. */
  readonly ended: Promise<number>
}

/** One machine of a vendor. Whatever goes wrong with it is thrown in the vendor's words. */
export interface Machine {
  readonly id: string
  /** Runs a line of shell as root; gives what it printed. */
  shell(line: string, call: MachineCall): Promise<string>
  /** Starts a line of shell that is talked to while it runs; not every vendor can. */
  talk?(line: string, call: TalkCall): Promise<Talk>
  /** Writes a file. */
  upload(path: string, bytes: Buffer, call: Call): Promise<void>
  /** Another machine that goes its own way from here, with its own lease. */
  fork(source: Pick<MachineSource, 'labels' | 'lease' | 'signal'>): Promise<Machine>
  /** Stops it without losing anything; it costs less, or nothing, until it is resumed. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Ends it; one that is gone already is no error. */
  end(): Promise<void>
}

/** A machine as a vendor lists it. */
export interface ListedMachine {
  readonly id: string
  readonly labels: Labels
}

/** A vendor of machines. */
export interface Vendor extends AsyncDisposable {
  readonly name: string
  /** Set if its machines have `talk`. */
  readonly talks?: true
  start(source: MachineSource): Promise<Machine>
  /** The machines that carry these labels, those of other processes too. */
  list(labels: Labels): Promise<readonly ListedMachine[]>
  end(id: string): Promise<void>
  /** Whether the vendor has no room for another machine just now. */
  isFull(cause: unknown): boolean
}
