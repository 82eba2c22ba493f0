// See landlock_program.py. A test assembles this and compares the bytes.
    ldr x0, [sp]                // the number of words
    add x21, sp, x0, lsl #3
    add x21, x21, #16           // the environment
    add x19, sp, #16            // the first word
    mov x20, #-1                // no rules yet
    mov x0, #0
    mov x1, #0
    mov x2, #1
    mov x8, #444                // landlock_create_ruleset: which version?
    svc #0
    cmp x0, #2
    b.lt next                   // below 2 every move between folders would fail
    sub sp, sp, #16
    mov x9, #0x2002             // write a file, move between folders
    str x9, [sp]
    mov x0, sp
    mov x1, #8
    mov x2, #0
    mov x8, #444                // landlock_create_ruleset
    svc #0
    tbnz x0, #63, fail
    mov x20, x0
next:
    ldr x1, [x19], #8
    ldrb w9, [x1]
    cmp w9, #0x2d               // a word that begins with - ends the folders
    b.eq ready
    tbnz x20, #63, next
    mov x0, #-100
    mov x2, #0xc000             // O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    movk x2, #0x28, lsl #16
    mov x8, #56                 // openat
    svc #0
    tbnz x0, #63, next
    str w0, [sp, #8]            // the rule: the rights above, and this folder
    mov x0, x20
    mov x1, #1
    mov x2, sp
    mov x3, #0
    mov x8, #445                // landlock_add_rule
    svc #0
    cbnz x0, fail
    ldr w0, [sp, #8]
    mov x8, #57                 // close
    svc #0
    b next
ready:
    tbnz x20, #63, start
    mov x0, #38                 // PR_SET_NO_NEW_PRIVS
    mov x1, #1
    mov x2, #0
    mov x3, #0
    mov x4, #0
    mov x8, #167                // prctl
    svc #0
    cbnz x0, fail
    mov x0, x20
    mov x1, #0
    mov x8, #446                // landlock_restrict_self
    svc #0
    cbnz x0, fail
    mov x0, x20
    mov x8, #57                 // close
    svc #0
start:
    ldr x0, [x19]
    mov x1, x19
    mov x2, x21
    mov x8, #221                // execve
    svc #0
fail:
    mov x0, #126
    mov x8, #94                 // exit_group
    svc #0
