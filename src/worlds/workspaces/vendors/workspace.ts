import { randomUUID } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { type Call, unlessStopped } from '../../../base/core/call.ts'
import { describeCause } from '../../../base/core/failure.ts'
import { startTimer } from '../../../base/core/process/timer.ts'
import type { Finished } from '../../sandboxes/run.ts'
import { packFolder } from '../archive.ts'
import {
  type CommandCall,
  type Put,
  type Workspace,
  WorkspaceError,
  type WorkspaceLimits,
  type WorkspaceSource,
  type WorkspaceUse,
} from '../contract.ts'
import { mostArchive } from '../remote.ts'
import {
  afterTalkLine,
  commandLine,
  machineFolder,
  quote,
  readAnswer,
  sweepLine,
  talkLine,
} from './command.ts'
import type { Machine, MachineCall, Talk } from './machine.ts'

/** What the workspaces of a vendor's machines share. */
export interface Keeping {
  readonly name: string
  readonly limits: WorkspaceLimits
  /** Seconds without a command after which a machine is paused; 0 never pauses. */
  readonly pause: number
  /** What an hour of a machine costs. */
  readonly price: number | undefined
  /** Seconds on a clock that never runs backwards. */
  readonly clock: () => number
  /** Starts a machine as a copy of another one. */
  fork(machine: Machine, call: Call): Promise<Machine>
  /** Ends a machine, and forgets it. */
  end(machine: Machine): Promise<void>
}

/** Seconds that an answer may take beyond the command's own limit, and that sending a folder may take. */
const graceSeconds = 60
const sendSeconds = 1800

/** A command that is talked to, and what it is talked to over. */
interface Talking {
  readonly call: Omit<CommandCall, 'input'>
  readonly input: PassThrough
  readonly output: PassThrough
}

/** Passes on what is written, part by part, and then its end. */
async function tellAll(input: PassThrough, talk: Talk): Promise<void> {
  for await (const part of input) await talk.write(part as Buffer)
  await talk.finish()
}

/** A workspace that is a machine of a vendor. */
export class MachineWorkspace implements Workspace {
  readonly start?: NonNullable<Workspace['start']>
  readonly #machine: Machine
  readonly #source: WorkspaceSource
  readonly #keeping: Keeping
  /** When the machine was last resumed or started; undefined while it is paused. */
  #since: number | undefined
  #seconds = 0
  #commands = 0
  #idle: NodeJS.Timeout | undefined
  #turning: Promise<void> = Promise.resolve()

  constructor(machine: Machine, source: WorkspaceSource, keeping: Keeping) {
    this.#machine = machine
    this.#source = source
    this.#keeping = keeping
    this.#since = keeping.clock()
    const { talk } = machine
    if (!talk) return
    this.start = (command, call) => {
      const [input, output] = [new PassThrough(), new PassThrough()]
      const work = () => this.#talk(talk, command, { call, input, output })
      const finished = this.#awake('start', call, work).finally(() => output.end())
      finished.catch(() => undefined)
      return { input, output, finished }
    }
  }

  /** Makes the folders that commands need. */
  async fill(call: Call): Promise<void> {
    const line = `mkdir -p ${machineFolder} ${quote(this.#source.workingFolder)} && echo made`
    await this.#awake('start', call, async () => {
      const printed = await this.#machine.shell(`(${line}) 2>&1`, {
        ...call,
        seconds: graceSeconds,
      })
      if (!printed.includes('made')) throw new Error(printed.slice(-300))
    })
    for (const put of this.#source.puts) await this.put(put, call)
  }

  async run(command: readonly string[], call: CommandCall): Promise<Finished> {
    const { limits, clock } = this.#keeping
    const { input, seconds = limits.seconds, variables, signal } = call
    return await this.#awake('run', call, async () => {
      const id = `espalier-${randomUUID()}`
      const file = input === undefined ? '/dev/null' : `${machineFolder}/${id}`
      if (input !== undefined) await this.#machine.upload(file, Buffer.from(input), call)
      const line = commandLine({
        id,
        words: command,
        folder: this.#source.workingFolder,
        variables: { ...this.#source.variables, ...variables },
        seconds,
        outputBytes: limits.outputBytes,
        input: file,
      })
      const began = clock()
      const whole = input === undefined ? line : `${line}\nrm -f ${file}`
      const printed = await this.#stoppable(id, whole, { signal, seconds: seconds + graceSeconds })
      const answer = readAnswer(id, printed)
      if (!answer) throw new Error(`not what a command prints: ${printed.slice(-300)}`)
      const isOver = answer.code === 137 && clock() - began >= seconds
      return { ...answer, end: isOver ? 'out-of-time' : 'exited' }
    })
  }

  /** A command that is told to stop is not waited for: it is ended, and the machine stays. */
  async #stoppable(id: string, line: string, call: MachineCall): Promise<string> {
    const { signal } = call
    signal.throwIfAborted()
    try {
      return await unlessStopped({ signal }, this.#machine.shell(line, call))
    } catch (cause) {
      if (!signal.aborted) throw cause
      const within = { signal: AbortSignal.timeout(1000 * graceSeconds), seconds: graceSeconds }
      await this.#machine.shell(sweepLine(id), within).catch(() => undefined)
      throw cause
    }
  }

  /** Talks until the command has ended, or is told to. */
  async #talk(
    talk: NonNullable<Machine['talk']>,
    command: readonly string[],
    { call, input, output }: Talking,
  ): Promise<Finished> {
    const { limits, clock } = this.#keeping
    const { seconds = limits.seconds, signal, variables } = call
    const id = `espalier-${randomUUID()}`
    const errors = `${machineFolder}/${id}`
    const began = clock()
    const given = { ...this.#source.variables, ...variables }
    const folder = this.#source.workingFolder
    const line = talkLine({ id, words: command, folder, variables: given, seconds }, errors)
    const onOutput = (text: string): void => void output.write(text)
    let code = 137
    try {
      const within = { signal, seconds: seconds + graceSeconds, onOutput }
      const talking = await talk.call(this.#machine, line, within)
      // What cannot be told any more is dropped: the command says how it ended.
      void tellAll(input, talking).catch(() => undefined)
      code = await unlessStopped({ signal }, talking.ended)
    } catch (cause) {
      if (!signal.aborted) throw cause
    }
    const rest = { signal: AbortSignal.timeout(1000 * graceSeconds), seconds: graceSeconds }
    const printed = await this.#machine.shell(afterTalkLine(id, errors, limits.outputBytes), rest)
    const complaints = Buffer.from(printed.trim(), 'base64').toString()
    const isOver = code === 137 && clock() - began >= seconds
    const end = signal.aborted ? 'stopped' : isOver ? 'out-of-time' : 'exited'
    return { end, code, output: '', complaints, cut: 0 }
  }

  async put({ from, to }: Put, call: Call): Promise<void> {
    const archive = await packFolder(from, { most: mostArchive, signal: call.signal })
    await this.#awake('put', call, async () => {
      const file = `${machineFolder}/espalier-${randomUUID()}`
      await this.#machine.upload(file, archive, call)
      const at = quote(to)
      const line = `mkdir -p ${at} && find ${at} -mindepth 1 -delete && tar -x --no-same-owner -f ${file} -C ${at} && echo put; rm -f ${file}`
      const printed = await this.#machine.shell(`(${line}) 2>&1`, { ...call, seconds: sendSeconds })
      if (!printed.includes('put')) throw new Error(`it did not unpack: ${printed.slice(-300)}`)
    })
  }

  async fork(call: Call): Promise<Workspace> {
    const machine = await this.#awake('fork', call, () => this.#keeping.fork(this.#machine, call))
    return new MachineWorkspace(machine, this.#source, this.#keeping)
  }

  use(): WorkspaceUse {
    const { name, price, clock } = this.#keeping
    const running = this.#since === undefined ? 0 : clock() - this.#since
    const seconds = Math.round((this.#seconds + running) * 1000) / 1000
    return {
      vendor: name,
      seconds,
      ...(price !== undefined && { cost: (seconds / 3600) * price }),
    }
  }

  /** Does something with a machine that is not paused; what goes wrong with it is the workspace's failure. */
  async #awake<T>(what: string, { signal }: Call, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    this.#commands++
    clearTimeout(this.#idle)
    try {
      await this.#turn(() => this.#resume())
      return await work()
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof WorkspaceError) throw cause
      const words = describeCause(cause).slice(0, 500)
      throw new WorkspaceError(`${this.#keeping.name} (${what}): ${words}`, { cause })
    } finally {
      this.#commands--
      this.#rest()
    }
  }

  /** Pausing and resuming come one after the other. */
  #turn(work: () => Promise<void>): Promise<void> {
    this.#turning = this.#turning.catch(() => undefined).then(work)
    return this.#turning
  }

  async #resume(): Promise<void> {
    if (this.#since !== undefined) return
    await this.#machine.resume()
    this.#since = this.#keeping.clock()
  }

  #rest(): void {
    const { pause } = this.#keeping
    if (pause === 0 || this.#commands > 0) return
    // A machine that cannot be paused goes on, and its next command says what is wrong with it.
    const pauseNow = () => void this.#turn(() => this.#pause()).catch(() => undefined)
    this.#idle = startTimer(pauseNow, pause * 1000)
    this.#idle.unref()
  }

  async #pause(): Promise<void> {
    if (this.#commands > 0 || this.#since === undefined) return
    await this.#machine.pause()
    this.#seconds += this.#keeping.clock() - this.#since
    this.#since = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle)
    this.#commands++
    await this.#turning.catch(() => undefined)
    await this.#keeping.end(this.#machine)
  }
}
