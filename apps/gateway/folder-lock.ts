import { createHash } from 'node:crypto'
import { realpathSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'

/** Another process works in the folder: two of them would write one journal, and each know a half of it. */
export class FolderTaken extends Error {
  constructor(folder: string) {
    super(`Another sandbox gateway works in ${folder}.`)
    this.name = 'FolderTaken'
  }
}

/**
 * Keeps the folder for this process until it ends, also where it is killed: a socket that is named after the folder belongs to one process, and the
 * operating system takes it back. A file with the id of a process would stay after a crash, and may name another process by then.
 */
export async function holdFolder(folder: string): Promise<void> {
  makeFolder(folder)
  const name = nameOf(realpathSync(folder))
  if (await listenAt(name)) return
  // In a file system the name outlives its process, and then no process answers.
  if (name.startsWith('\0') || (await isAnswered(name))) throw new FolderTaken(folder)
  rmSync(name, { force: true })
  if (!(await listenAt(name))) throw new FolderTaken(folder)
}

/** Linux knows names that are in no file system. */
function nameOf(folder: string): string {
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 32)
  const name = `onlyonce-sandbox-${digest}`
  if (process.platform === 'linux') return `\0${name}`
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`)
}

function listenAt(path: string): Promise<boolean> {
  const server = createServer((socket) => socket.destroy())
  // It keeps no process alive.
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    server.listen(path, () => resolve(true))
  })
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const end = (answered: boolean) => {
      socket.destroy()
      resolve(answered)
    }
    socket.once('connect', () => end(true)).once('error', () => end(false))
  })
}
