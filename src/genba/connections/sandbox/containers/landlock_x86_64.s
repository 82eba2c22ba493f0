# See landlock_program.py. A test assembles this and compares the bytes.
.intel_syntax noprefix
    mov rax, [rsp]              # the number of words
    lea r13, [rsp+rax*8+16]     # the environment
    lea rbx, [rsp+16]           # the first word
    mov r12, -1                 # no rules yet
    xor edi, edi
    xor esi, esi
    mov edx, 1
    mov eax, 444                # landlock_create_ruleset: which version?
    syscall
    cmp eax, 2
    jl next                     # below 2 every move between folders would fail
    push 0x2002                 # write a file, move between folders
    mov rdi, rsp
    mov esi, 8
    xor edx, edx
    mov eax, 444                # landlock_create_ruleset
    syscall
    test eax, eax
    js fail
    mov r12d, eax
next:
    mov rsi, [rbx]
    add rbx, 8
    cmp byte ptr [rsi], 0x2d    # a word that begins with - ends the folders
    je ready
    test r12, r12
    js next
    mov edi, -100
    mov edx, 0x2b0000           # O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    mov eax, 257                # openat
    syscall
    test eax, eax
    js next
    mov [rsp+8], eax            # the rule: the rights above, and this folder
    mov edi, r12d
    mov esi, 1
    mov rdx, rsp
    xor r10d, r10d
    mov eax, 445                # landlock_add_rule
    syscall
    test eax, eax
    jnz fail
    mov edi, [rsp+8]
    mov eax, 3                  # close
    syscall
    jmp next
ready:
    test r12, r12
    js start
    mov edi, 38                 # PR_SET_NO_NEW_PRIVS
    mov esi, 1
    xor edx, edx
    xor r10d, r10d
    xor r8d, r8d
    mov eax, 157                # prctl
    syscall
    test eax, eax
    jnz fail
    mov edi, r12d
    xor esi, esi
    mov eax, 446                # landlock_restrict_self
    syscall
    test eax, eax
    jnz fail
    mov edi, r12d
    mov eax, 3                  # close
    syscall
start:
    mov rdi, [rbx]
    mov rsi, rbx
    mov rdx, r13
    mov eax, 59                 # execve
    syscall
fail:
    mov edi, 126
    mov eax, 231                # exit_group
    syscall
